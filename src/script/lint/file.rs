//! A file as the lints see it: its functions, taken apart as far as they need.

use std::collections::{BTreeMap, BTreeSet};

use rhai::{AST, ASTNode, Dynamic, Expr, FnPtr, ImmutableString, Stmt};

use super::super::check;
use super::super::host::limits::LimitValue;
use super::super::source::SourceFile;

/// A function by its name and the number of its parameters.
pub(super) type Signature = (ImmutableString, usize);

/// A parsed file.
pub(super) struct File<'a> {
    pub(super) source: &'a SourceFile,
    pub(super) functions: BTreeMap<Signature, Function>,
    /// What stands at file level.
    pub(super) statements: &'a [Stmt],
    /// The values of its constants; empty where the files do not all load.
    pub(super) constants: BTreeMap<ImmutableString, Constant>,
}

/// A constant of a file.
pub(super) struct Constant {
    pub(super) value: Dynamic,
    pub(super) position: rhai::Position,
}

/// A function of a file; closures are some too, under names that no file can write.
pub(super) struct Function {
    pub(super) name: ImmutableString,
    pub(super) parameters: Vec<ImmutableString>,
    pub(super) private: bool,
    pub(super) body: Vec<Stmt>,
}

impl<'a> File<'a> {
    pub(super) fn new(source: &'a SourceFile, ast: &'a AST) -> File<'a> {
        let mut functions = BTreeMap::new();
        for definition in ast.iter_fn_def() {
            let mut body = Vec::new();
            check::alone(definition).walk(&mut |path: &[ASTNode]| {
                if let [ASTNode::Stmt(stmt)] = path {
                    body.push((*stmt).clone());
                }
                true
            });
            let parameters: Vec<ImmutableString> = definition.params.iter().cloned().collect();
            let name = definition.name.clone();
            let private = definition.access.is_private();
            functions.insert((name.clone(), parameters.len()), Function { name, parameters, private, body });
        }
        File { source, functions, statements: ast.statements(), constants: BTreeMap::new() }
    }

    /// The closure that an expression makes, and how many of its parameters it captures.
    pub(super) fn closure(&self, expr: &Expr) -> Option<(&Function, usize)> {
        let (pointer, captured) = match expr {
            Expr::DynamicConstant(value, _) => (value, 0),
            Expr::FnCall(call, _) if call.name == "curry" => match call.args.first() {
                Some(Expr::DynamicConstant(value, _)) => (value, call.args.len() - 1),
                _ => return None,
            },
            // What is captured is made sharable first.
            Expr::Stmt(block) => match block.statements() {
                [Stmt::Share(_), Stmt::Expr(curried)] => return self.closure(curried),
                [Stmt::Share(_), Stmt::FnCall(call, position)] => {
                    return self.closure(&Expr::FnCall(call.clone(), *position));
                }
                _ => return None,
            },
            _ => return None,
        };
        let pointer = pointer.read_lock::<FnPtr>()?;
        // A name that can be written is that of a function, which stands for itself.
        let mut closures = self.functions.values().filter(|function| function.is_closure());
        closures.find(|function| function.name == pointer.fn_name()).map(|function| (function, captured))
    }

    /// Whether a constant is a limit that refuses nothing.
    pub(super) fn is_shadow(&self, constant: &str) -> bool {
        let value = self.constants.get(constant).and_then(|constant| constant.value.read_lock::<LimitValue>());
        value.is_some_and(|limit| limit.0.is_shadow())
    }

    /// Every expression of its functions and its file level.
    pub(super) fn each_expression(&self, each: &mut impl FnMut(&Expr)) {
        expressions(self.statements, each);
        self.functions.values().for_each(|function| expressions(&function.body, each));
    }
}

impl Function {
    pub(super) fn is_closure(&self) -> bool {
        !rhai::is_valid_identifier(self.name.as_str())
    }

    /// The names that it reads, closures in it included.
    pub(super) fn names(&self) -> BTreeSet<ImmutableString> {
        let mut names = BTreeSet::new();
        expressions(&self.body, &mut |expr| names.extend(variable(expr).cloned()));
        names
    }
}

/// Every expression of some statements, those of nested blocks too.
pub(super) fn expressions(statements: &[Stmt], each: &mut impl FnMut(&Expr)) {
    for stmt in statements {
        stmt.walk(&mut Vec::new(), &mut |path: &[ASTNode]| {
            match path.last() {
                Some(ASTNode::Expr(expr)) => each(expr),
                // The interpreter keeps a call that stands alone as a statement of its own.
                Some(ASTNode::Stmt(Stmt::FnCall(call, position))) => each(&Expr::FnCall(call.clone(), *position)),
                // What a `break` or `return` hands on is walked by the interpreter only for the latter.
                Some(ASTNode::Stmt(Stmt::BreakLoop(Some(expr), ..))) => each(expr),
                _ => {}
            }
            true
        });
    }
}

/// The name that an expression is.
pub(super) fn variable(expr: &Expr) -> Option<&ImmutableString> {
    match expr {
        Expr::Variable(variable, ..) if variable.2.is_empty() => Some(&variable.1),
        _ => None,
    }
}

/// The expressions that an expression is made of, blocks left out.
pub(super) fn parts(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::InterpolatedString(parts, _) | Expr::Array(parts, _) => parts.iter().collect(),
        Expr::Map(fields, _) => fields.0.iter().map(|(_, value)| value).collect(),
        Expr::FnCall(call, _) | Expr::MethodCall(call, _) => call.args.iter().collect(),
        Expr::Dot(chain, ..) | Expr::Index(chain, ..) => vec![&chain.lhs, &chain.rhs],
        Expr::And(parts, _) | Expr::Or(parts, _) | Expr::Coalesce(parts, _) => parts.iter().collect(),
        _ => Vec::new(),
    }
}
