//! Checks: what is wrong in a compiled file and can be told without running it.

use std::collections::{BTreeMap, BTreeSet};

use rhai::{
    AST, ASTFlags, ASTNode, Expr, FnCallExpr, FnPtr, ImmutableString, Module, Position, ScriptFuncDef, Shared, Stmt,
};

use crate::error::Diagnostic;

use super::diagnostic::{at, hinted, warning};
use super::known::Known;
use super::procedure::Signatures;
use super::source::SourceFile;
use crate::spelling;

/// What a file's functions may name.
pub(super) struct Names<'a> {
    pub(super) known: &'a Known,
    /// Constants of this file.
    pub(super) constants: &'a BTreeSet<String>,
    /// Procedures of all files.
    pub(super) procedures: &'a BTreeMap<String, Signatures>,
    /// Private functions of this file.
    pub(super) privates: &'a BTreeMap<String, Signatures>,
}

/// Why a call with so many arguments fits none of these.
fn misfit(signatures: &Signatures, count: usize) -> String {
    let names: Vec<String> = signatures.values().map(|signature| format!("`{signature}`")).collect();
    let counts: Vec<String> = signatures.keys().map(usize::to_string).collect();
    let plural = if counts == ["1"] { "" } else { "s" };
    format!("{} takes {} argument{plural}, not {count}", names.join(" or "), counts.join(" or "))
}

/// Where a file names its constants and private functions: what the second pass renames.
pub(super) type Places = BTreeSet<(usize, usize)>;

/// Methods that change what they are called on.
const CHANGING: [&str; 18] = [
    "push", "pop", "shift", "insert", "remove", "clear", "append", "truncate", "pad", "chop", "reverse", "sort",
    "drain", "retain", "splice", "mixin", "set", "dedup",
];

/// A function alone, to be walked.
pub(super) fn alone(definition: &Shared<ScriptFuncDef>) -> AST {
    let mut module = Module::new();
    module.set_script_fn(definition.clone());
    AST::new([], module)
}

/// Walks every function and statement of a file.
pub(super) fn file(file: &SourceFile, ast: &AST, names: &Names, places: &mut Places, out: &mut Vec<Diagnostic>) {
    let mut check = Check { file, names, locals: Vec::new(), in_function: false, places, out };
    let file_level = AST::new(ast.statements().iter().cloned(), Module::new());
    check.walk(&file_level);
    let functions: Vec<_> = ast.iter_fn_def().map(|definition| (definition, alone(definition))).collect();
    let captured = captured_from_file(&file_level, &functions);
    check.in_function = true;
    for (definition, body) in &functions {
        // What a closure captures are parameters too, and the only locals that are found by name.
        let from_file = captured.get(&definition.name);
        let is_local = |name: &&ImmutableString| !from_file.is_some_and(|names| names.contains(*name));
        check.locals = definition.params.iter().filter(is_local).cloned().collect();
        check.walk(body);
    }
}

/// What each closure captures that is no local of any function around it: constants and functions of the file.
///
/// The interpreter makes a parameter of everything that a closure captures, and passes it where the closure is made.
fn captured_from_file(
    file_level: &AST,
    functions: &[(&Shared<ScriptFuncDef>, AST)],
) -> BTreeMap<ImmutableString, BTreeSet<ImmutableString>> {
    let none: &[ImmutableString] = &[];
    let bodies = functions.iter().map(|(definition, body)| (definition.name.clone(), &definition.params[..], body));
    let everything = std::iter::once((ImmutableString::new(), none, file_level)).chain(bodies);
    // Of a name passed to a closure: the function around it, whether the name is a parameter there, the closure.
    let mut passed = Vec::new();
    for (around, parameters, body) in everything {
        body.walk(&mut |path: &[ASTNode]| {
            if let Some(ASTNode::Expr(Expr::FnCall(call, _))) = path.last()
                && call.name == "curry"
                && let Some(Expr::DynamicConstant(closure, _)) = call.args.first()
                && let Some(closure) = closure.read_lock::<FnPtr>()
            {
                for argument in &call.args[1..] {
                    if let Expr::Variable(variable, None, _) = argument
                        && variable.0.is_none()
                    {
                        let parameter = parameters.contains(&variable.1);
                        let closure = ImmutableString::from(closure.fn_name());
                        passed.push((around.clone(), parameter, closure, variable.1.clone()));
                    }
                }
            }
            true
        });
    }
    let mut captured: BTreeMap<ImmutableString, BTreeSet<ImmutableString>> = BTreeMap::new();
    // A closure in a closure gets what the outer one has, so this goes on from the outside inwards.
    loop {
        let mut grown = false;
        for (around, parameter, closure, name) in &passed {
            if !parameter || captured.get(around).is_some_and(|names| names.contains(name)) {
                grown |= captured.entry(closure.clone()).or_default().insert(name.clone());
            }
        }
        if !grown {
            return captured;
        }
    }
}

/// A walk through one function.
struct Check<'a> {
    file: &'a SourceFile,
    names: &'a Names<'a>,
    locals: Vec<ImmutableString>,
    in_function: bool,
    places: &'a mut Places,
    out: &'a mut Vec<Diagnostic>,
}

impl Check<'_> {
    fn walk(&mut self, ast: &AST) {
        ast.walk(&mut |path: &[ASTNode]| {
            match path.last() {
                Some(ASTNode::Expr(expr)) => self.expression(expr),
                Some(ASTNode::Stmt(stmt)) => self.statement(stmt),
                _ => {}
            }
            true
        });
    }

    /// The constant of the file that an expression names, and where.
    fn constant<'e>(&self, expr: &'e Expr) -> Option<(&'e str, Position)> {
        match expr {
            Expr::Variable(variable, None, position) if variable.0.is_none() => {
                let name = variable.1.as_str();
                let local = self.locals.iter().any(|local| local == name);
                (!local && self.names.constants.contains(name)).then_some((name, *position))
            }
            _ => None,
        }
    }

    fn expression(&mut self, expr: &Expr) {
        match expr {
            Expr::Variable(variable, short, position) => {
                let (long, name, namespace, _) = &**variable;
                if !namespace.is_empty() {
                    self.no_module(&namespace.to_string(), *position);
                } else if short.is_none() && long.is_none() && !self.locals.contains(name) {
                    self.variable_outside(name, *position);
                }
            }
            Expr::FnCall(call, position) => self.call(call, *position, false),
            Expr::MethodCall(call, position) => self.call(call, *position, true),
            Expr::Dot(chain, ..) => {
                if let (Some((name, position)), Expr::MethodCall(call, _)) = (self.constant(&chain.lhs), &chain.rhs)
                    && CHANGING.contains(&call.name.as_str())
                {
                    let message = format!("`{name}` is a constant: `{}` would change a copy and lose it", call.name);
                    self.out.push(at(self.file, position, "constant", message));
                }
            }
            _ => {}
        }
    }

    fn statement(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::FnCall(call, position) => self.call(call, *position, false),
            Stmt::Import(_, position) | Stmt::Export(_, position) => {
                let message = "files see each other's procedures without import or export";
                self.out.push(at(self.file, *position, "import", message));
            }
            Stmt::Assignment(assignment) => {
                let mut root = &assignment.1.lhs;
                while let Expr::Dot(chain, ..) | Expr::Index(chain, ..) = root {
                    root = &chain.lhs;
                }
                if let Some((name, position)) = self.constant(root) {
                    let message = format!("`{name}` is a constant and cannot be assigned to");
                    self.out.push(at(self.file, position, "constant", message));
                }
            }
            _ => {}
        }
    }

    /// A variable that is not local: a constant of the file, a function used as a value, or a mistake.
    fn variable_outside(&mut self, name: &str, position: Position) {
        let names = self.names;
        if names.constants.contains(name) || names.privates.contains_key(name) || names.procedures.contains_key(name) {
            self.places.insert(place(position));
        } else {
            let hint = match name {
                "nil" | "None" | "undefined" => Some("write `()` for nothing".to_owned()),
                _ if names.known.has_name(name) => Some(format!("`{name}` is a function: call it, `{name}(…)`")),
                _ => spelling::nearest(name, names.constants.iter().map(String::as_str))
                    .map(|near| format!("did you mean `{near}`?"))
                    .or_else(|| Some(format!("`let {name} = …` makes one, for the block it stands in"))),
            };
            let message = format!("there is no variable `{name}`");
            let fault = hinted(at(self.file, position, "unknown_variable", message), hint);
            // A closure names it once itself, and once more where it is made.
            if !self.out.contains(&fault) {
                self.out.push(fault);
            }
        }
    }

    fn no_module(&mut self, namespace: &str, position: Position) {
        let message = format!("there is no module `{namespace}`");
        self.out.push(at(self.file, position, "unknown_module", message));
    }

    fn call(&mut self, call: &FnCallExpr, position: Position, method: bool) {
        let (file, names) = (self.file, self.names);
        let name = call.name.as_str();
        if call.is_operator_call() || !rhai::is_valid_identifier(name) {
            return;
        }
        if call.is_qualified() {
            return self.no_module(&call.namespace.to_string(), position);
        }
        let count = call.args.len();
        let known_as = count + usize::from(method);
        if let Some(signatures) = names.privates.get(name) {
            if signatures.contains_key(&count) {
                self.places.insert(place(position));
                return;
            }
            // A host function of the same name and other parameters is fine.
            if !names.known.has(name, known_as) {
                return self.out.push(at(file, position, "wrong_arguments", misfit(signatures, count)));
            }
        }
        match names.procedures.get(name) {
            Some(signatures) if signatures.contains_key(&count) => return,
            Some(signatures) if !names.known.has_name(name) => {
                return self.out.push(at(file, position, "wrong_arguments", misfit(signatures, count)));
            }
            _ => {}
        }
        if self.in_function && !method && FILE_LEVEL_ONLY.contains(&name) {
            // Who catches the error may even want it, so the file loads.
            let message = format!("`{name}` is a declaration, and fails in a function");
            let hint = "write it at file level, outside of functions";
            self.out.push(hinted(warning(file, position, "declaration_in_function", message), Some(hint)));
        }
        let Some((message, mut hint)) = names.known.fault(name, known_as, method) else { return };
        if method && !names.known.has_name(name) {
            // A map may hold a function under this name, which only running it shows.
            return self.out.push(hinted(warning(file, position, "unknown_method", message), hint));
        }
        if hint.is_none() && !names.known.has_name(name) {
            let own = names.procedures.keys().chain(names.privates.keys()).map(String::as_str);
            hint = spelling::nearest(name, own).map(|near| format!("did you mean `{near}`?"));
        }
        let code = if names.known.has_name(name) { "wrong_arguments" } else { "unknown_function" };
        self.out.push(hinted(at(file, position, code, message), hint));
    }
}

fn place(position: Position) -> (usize, usize) {
    (position.line().unwrap_or(0), position.position().unwrap_or(0))
}

/// The declarations that a file may make at file level, besides constants.
const DECLARATIONS: [&str; 12] = [
    "collection",
    "create_index",
    "create_unique_index",
    "create_ttl_index",
    "fixed_window",
    "token_bucket",
    "sliding_window",
    "sliding_counter",
    "calendar_quota",
    "concurrency",
    "every",
    "cron",
];

/// Those of them that nothing but a file may make: a limit can be made of a call's arguments.
const FILE_LEVEL_ONLY: [&str; 6] =
    ["collection", "create_index", "create_unique_index", "create_ttl_index", "every", "cron"];

/// What stands at file level and must not.
pub(super) fn file_level(file: &SourceFile, ast: &AST, out: &mut Vec<Diagnostic>) {
    for stmt in ast.statements() {
        let hint = match stmt {
            Stmt::Noop(_) => continue,
            Stmt::Var(_, flags, _) if flags.intersects(ASTFlags::CONSTANT) => continue,
            Stmt::Var(..) => "write `const`: a variable of the file would be seen by no function",
            Stmt::FnCall(call, _) if DECLARATIONS.contains(&call.name.as_str()) => continue,
            Stmt::Expr(expr) if declares(expr) => continue,
            // Reported with the imports.
            Stmt::Import(..) | Stmt::Export(..) => continue,
            Stmt::Assignment(..) => "write `const` before it",
            _ => "put it inside a function: a file runs once, when it is loaded, without a store",
        };
        let message = "only constants, limits, collections and schedules can stand at file level";
        out.push(hinted(at(file, stmt.position(), "file_level", message), Some(hint)));
    }
}

fn declares(expr: &Expr) -> bool {
    match expr {
        Expr::Dot(chain, ..) => declares(&chain.lhs),
        Expr::FnCall(call, _) => DECLARATIONS.contains(&call.name.as_str()),
        _ => false,
    }
}
