//! Declarations: the file level of a file, run once at load, statement by statement.

use rhai::{AST, Dynamic, Engine, ImmutableString, Module, Position, Scope, Stmt};

use crate::error::Diagnostic;

use super::call::{Current, Entered};
use super::diagnostic::{at, hinted};
use super::failure;
use super::host::collections::CollectionValue;
use super::host::limits::LimitValue;
use super::host::schedules::ScheduleValue;
use super::known::Known;
use super::source::SourceFile;
use crate::spelling;

/// What the file level of a file came to.
pub(super) struct Declared {
    /// The constants in their order, each with where it is defined.
    pub(super) constants: Vec<(ImmutableString, Dynamic, Position)>,
    /// The limits with the places of their declarations; also those that no constant holds.
    pub(super) limits: Vec<(LimitValue, Position)>,
    /// The collections with the places of their declarations.
    pub(super) collections: Vec<(CollectionValue, Position)>,
    /// The schedules with the places of their declarations.
    pub(super) schedules: Vec<(ScheduleValue, Position)>,
}

/// Runs the file level of a compiled file. A statement that fails is reported, and the next ones still run.
pub(super) fn run(engine: &Engine, known: &Known, file: &SourceFile, ast: &AST, out: &mut Vec<Diagnostic>) -> Declared {
    let mut functions = Module::new();
    for definition in ast.iter_fn_def() {
        // Closures only: a procedure at file level would run where there is no call.
        if !rhai::is_valid_identifier(definition.name.as_str()) {
            functions.set_script_fn(definition.clone());
        }
    }
    let functions: rhai::Shared<Module> = functions.into();
    let mut scope = Scope::new();
    let mut declared =
        Declared { constants: Vec::new(), limits: Vec::new(), collections: Vec::new(), schedules: Vec::new() };
    let mut broken = false;
    for stmt in ast.statements() {
        let position = stmt.position();
        let before = scope.len();
        let mut single = AST::new([stmt.clone()], functions.clone());
        single.set_source(&*file.path);
        let entered = Entered::new(Current::Loading);
        let result = engine.eval_ast_with_scope::<Dynamic>(&mut scope, &single);
        entered.leave();
        let name = match stmt {
            Stmt::Var(variable, ..) => Some(variable.0.name.clone()),
            _ => None,
        };
        match result {
            Ok(value) => {
                if name.is_none() {
                    declared.collect(&value, position);
                }
            }
            Err(error) => {
                // After a first failure a later one may only follow from it: the constants it left are missing.
                let (raised, place) = failure::at_load(*error);
                if !broken || !raised.message.contains("()") {
                    let place = if place.is_none() { position } else { place };
                    let code = match &*raised.code {
                        "bad_limit" => "bad_limit",
                        "bad_schedule" => "bad_schedule",
                        _ => "declaration",
                    };
                    let hint = raised.hint.or_else(|| {
                        let word = raised.unknown_function.as_deref()?;
                        spelling::nearest(word, known.names()).map(|near| format!("did you mean `{near}`?"))
                    });
                    out.push(hinted(at(file, place, code, raised.message), hint));
                }
                broken = true;
                if let Some(name) = &name
                    && scope.len() == before
                {
                    // Later statements find variables by their distance from the end.
                    scope.push_constant_dynamic(name.clone(), Dynamic::UNIT);
                }
            }
        }
        if let Some(name) = name
            && let Some(value) = scope.get(&name)
        {
            let value = value.flatten_clone();
            declared.collect(&value, position);
            declared.constants.push((name, value, position));
        }
    }
    declared
}

impl Declared {
    /// Finds the limits, collections and schedules in a value.
    fn collect(&mut self, value: &Dynamic, position: Position) {
        if let Some(limit) = value.read_lock::<LimitValue>() {
            self.limits.push((limit.clone(), position));
        } else if let Some(collection) = value.read_lock::<CollectionValue>() {
            self.collections.push((collection.clone(), position));
        } else if let Some(schedule) = value.read_lock::<ScheduleValue>() {
            self.schedules.push((schedule.clone(), position));
        } else if let Ok(items) = value.as_array_ref() {
            items.iter().for_each(|item| self.collect(item, position));
        } else if let Ok(map) = value.as_map_ref() {
            map.values().for_each(|item| self.collect(item, position));
        }
    }
}
