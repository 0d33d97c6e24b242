//! Checks: what is wrong in a compiled file and can be told without running it.

use std::collections::{BTreeMap, BTreeSet};

use rhai::{AST, ASTFlags, ASTNode, Expr, FnCallExpr, Position, Stmt};

use crate::error::Diagnostic;

use super::diagnostic::{at, hinted, warning};
use super::known::Known;
use super::source::SourceFile;
use super::suggest;

/// What a file's functions may name.
pub(super) struct Names<'a> {
    pub(super) known: &'a Known,
    /// Constants of this file.
    pub(super) constants: &'a BTreeSet<String>,
    /// Procedures of all files, with their numbers of parameters.
    pub(super) procedures: &'a BTreeMap<String, usize>,
    /// Private functions of this file.
    pub(super) privates: &'a BTreeMap<String, BTreeSet<usize>>,
}

/// Where a file names its constants and private functions: what the second pass renames.
pub(super) type Places = BTreeSet<(usize, usize)>;

/// Methods that change what they are called on.
const CHANGING: [&str; 18] = [
    "push", "pop", "shift", "insert", "remove", "clear", "append", "truncate", "pad", "chop", "reverse", "sort",
    "drain", "retain", "splice", "mixin", "set", "dedup",
];

/// Walks every function and statement of a file.
pub(super) fn file(file: &SourceFile, ast: &AST, names: &Names, places: &mut Places, out: &mut Vec<Diagnostic>) {
    ast.walk(&mut |path: &[ASTNode]| {
        match path.last() {
            Some(ASTNode::Expr(expr)) => expression(file, expr, names, places, out),
            Some(ASTNode::Stmt(stmt)) => statement(file, stmt, names, places, out),
            _ => {}
        }
        true
    });
}

fn place(position: Position) -> (usize, usize) {
    (position.line().unwrap_or(0), position.position().unwrap_or(0))
}

fn expression(file: &SourceFile, expr: &Expr, names: &Names, places: &mut Places, out: &mut Vec<Diagnostic>) {
    match expr {
        Expr::Variable(variable, short, position) => {
            let (long, name, namespace, _) = &**variable;
            if !namespace.is_empty() {
                out.push(at(file, *position, "unknown_module", format!("there is no module `{namespace}`")));
            } else if short.is_none() && long.is_none() {
                variable_outside(file, name, *position, names, places, out);
            }
        }
        Expr::FnCall(call, position) => function_call(file, call, *position, false, names, places, out),
        Expr::MethodCall(call, position) => function_call(file, call, *position, true, names, places, out),
        Expr::Dot(chain, ..) => {
            if let (Expr::Variable(variable, None, position), Expr::MethodCall(call, _)) = (&chain.lhs, &chain.rhs)
                && variable.0.is_none()
                && names.constants.contains(variable.1.as_str())
                && CHANGING.contains(&call.name.as_str())
            {
                let name = &variable.1;
                let message = format!("`{name}` is a constant: `{}` would change a copy and lose it", call.name);
                out.push(at(file, *position, "constant", message));
            }
        }
        _ => {}
    }
}

/// A variable that is not local: a constant of the file, a function used as a value, or a mistake.
fn variable_outside(
    file: &SourceFile,
    name: &str,
    position: Position,
    names: &Names,
    places: &mut Places,
    out: &mut Vec<Diagnostic>,
) {
    if names.constants.contains(name) || names.privates.contains_key(name) {
        places.insert(place(position));
    } else if !names.procedures.contains_key(name) {
        let hint = match name {
            "null" | "nil" | "None" | "undefined" => Some("write `()` for nothing".to_owned()),
            _ => suggest::nearest(name, names.constants.iter().map(String::as_str))
                .map(|near| format!("did you mean `{near}`?")),
        };
        out.push(hinted(at(file, position, "unknown_variable", format!("there is no variable `{name}`")), hint));
    }
}

fn statement(file: &SourceFile, stmt: &Stmt, names: &Names, places: &mut Places, out: &mut Vec<Diagnostic>) {
    match stmt {
        Stmt::FnCall(call, position) => function_call(file, call, *position, false, names, places, out),
        Stmt::Import(_, position) | Stmt::Export(_, position) => {
            let message = "files see each other's procedures without import or export";
            out.push(at(file, *position, "import", message));
        }
        Stmt::Assignment(assignment) => {
            let mut root = &assignment.1.lhs;
            while let Expr::Dot(chain, ..) | Expr::Index(chain, ..) = root {
                root = &chain.lhs;
            }
            if let Expr::Variable(variable, None, position) = root
                && variable.0.is_none()
                && names.constants.contains(variable.1.as_str())
            {
                let message = format!("`{}` is a constant and cannot be assigned to", variable.1);
                out.push(at(file, *position, "constant", message));
            }
        }
        _ => {}
    }
}

fn function_call(
    file: &SourceFile,
    call: &FnCallExpr,
    position: Position,
    method: bool,
    names: &Names,
    places: &mut Places,
    out: &mut Vec<Diagnostic>,
) {
    let name = call.name.as_str();
    if call.is_operator_call() || !rhai::is_valid_identifier(name) {
        return;
    }
    if call.is_qualified() {
        out.push(at(file, position, "unknown_module", format!("there is no module `{}`", call.namespace)));
        return;
    }
    let count = call.args.len();
    if let Some(arities) = names.privates.get(name) {
        if arities.contains(&count) {
            places.insert(place(position));
            return;
        }
        // A host function of the same name and other parameters is fine.
        if !names.known.has(name, count + usize::from(method)) {
            let list = arities.iter().map(usize::to_string).collect::<Vec<_>>().join(" or ");
            let message = format!("`{name}` takes {list} arguments, not {count}");
            return out.push(at(file, position, "wrong_arguments", message));
        }
    }
    match names.procedures.get(name) {
        Some(parameters) if *parameters == count => return,
        Some(parameters) if !names.known.has_name(name) => {
            let plural = if *parameters == 1 { "" } else { "s" };
            let message = format!("`{name}` takes {parameters} argument{plural}, not {count}");
            return out.push(at(file, position, "wrong_arguments", message));
        }
        _ => {}
    }
    let Some((message, mut hint)) = names.known.fault(name, count + usize::from(method), method) else { return };
    if method && !names.known.has_name(name) {
        // A map may hold a function under this name, which only running it shows.
        return out.push(hinted(warning(file, position, "unknown_method", message), hint));
    }
    if hint.is_none() && !names.known.has_name(name) {
        let own = names.procedures.keys().chain(names.privates.keys()).map(String::as_str);
        hint = suggest::nearest(name, own).map(|near| format!("did you mean `{near}`?"));
    }
    let code = if names.known.has_name(name) { "wrong_arguments" } else { "unknown_function" };
    out.push(hinted(at(file, position, code, message), hint));
}

/// The declarations that a file may make at file level, besides constants.
const DECLARATIONS: [&str; 10] = [
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
];

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
            _ => "put it inside a function: a file runs once, when it is loaded, without a store",
        };
        let message = "only constants, limits and collections can stand at file level";
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

/// Calls that spend tokens.
const SPENDING: [&str; 6] = ["take", "take_all", "enforce", "enforce_all", "charge", "reserve"];

/// Warns where an `abort` can follow a take: the abort undoes the take too, so the attempt is not counted.
pub(super) fn abort_after_take(file: &SourceFile, function: &str, body: &AST, out: &mut Vec<Diagnostic>) {
    let mut spent = false;
    body.walk(&mut |path: &[ASTNode]| {
        let call = match path.last() {
            Some(ASTNode::Expr(Expr::FnCall(call, position) | Expr::MethodCall(call, position))) => (call, *position),
            Some(ASTNode::Stmt(Stmt::FnCall(call, position))) => (call, *position),
            _ => return true,
        };
        if SPENDING.contains(&call.0.name.as_str()) {
            spent = true;
        } else if spent && call.0.name == "abort" {
            let message =
                format!("this `abort` undoes the take before it in `{function}`, so the attempt is not counted");
            let hint = "use `deny` to refuse and keep what was spent";
            out.push(hinted(warning(file, call.1, "abort_after_take", message), Some(hint)));
        }
        true
    });
}
