//! A program: all procedure files of a folder, compiled together, immutable and shared.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rhai::{AST, ASTNode, Dynamic, Engine, Expr, FnPtr, ImmutableString, Module, Scope, Shared, Stmt, StmtBlock};

use crate::error::{Diagnostic, Error, Position, Severity};

use super::budget::Budget;
use super::check::{self, Names, Places};
use super::declare::{self, Declared};
use super::diagnostic::{at, hinted, position, syntax};
use super::failure;
use super::fingerprint::{Part, PartKind};
use super::gather::{self, DeclaredCollection, DeclaredLimit, DeclaredSchedule};
use super::known::Known;
use super::lint;
use super::natives::Natives;
use super::procedure::{self, Procedure, Signatures};
use super::rename::{self, Renaming};
use super::sandbox;
use super::source::SourceFile;
use crate::spelling;

/// All procedure files of a folder, compiled.
pub(crate) struct Program {
    /// Tells programs apart where a thread keeps what belongs to one.
    pub(super) id: u64,
    pub(super) engine: Engine,
    pub(super) library: Shared<Module>,
    pub(super) compiled: Vec<Compiled>,
    pub(super) known: Known,
    /// Constants of all files by their plain names, the first file's first.
    pub(super) constants: Vec<(ImmutableString, Dynamic)>,
    procedures: Vec<Procedure>,
    index: HashMap<String, usize>,
    limits: Vec<DeclaredLimit>,
    collections: Vec<DeclaredCollection>,
    schedules: Vec<DeclaredSchedule>,
    files: Vec<SourceFile>,
    functions: HashMap<String, usize>,
    parts: Vec<Part>,
    /// The files as they were parsed first, for the lints.
    parsed: Vec<AST>,
    /// What the compiler told of.
    doubts: Vec<Diagnostic>,
    /// What a person should look at, once somebody asked.
    warnings: OnceLock<Vec<Diagnostic>>,
    budget: Budget,
}

/// A procedure made ready to run: its body as one block over the scope that holds its arguments.
pub(super) struct Compiled {
    pub(super) body: Expr,
    pub(super) parameters: Vec<ImmutableString>,
    pub(super) path: Arc<str>,
}

/// A file after its first pass.
struct Surveyed<'a> {
    file: &'a SourceFile,
    ast: AST,
    constants: BTreeSet<String>,
    privates: BTreeMap<String, Signatures>,
}

impl Program {
    /// Compiles files together, all or none, within the bounds of `budget`.
    ///
    /// Errors: every fault of every file.
    pub(crate) fn compile(
        files: Vec<SourceFile>,
        natives: &Natives,
        budget: &Budget,
    ) -> Result<Program, Vec<Diagnostic>> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let mut engine = sandbox::engine(natives, budget);
        let known = Known::of(&engine);
        let renaming = rename::Shared::default();
        rename::install(&mut engine, &renaming);
        let mut faults = Vec::new();

        let surveyed = survey(&mut engine, &files, &mut faults);
        let (procedures, of_file) = name_procedures(&surveyed, &known, &mut faults);
        let signatures = procedures.iter().map(Procedure::signatures).collect();

        let mut library = Module::new();
        let mut parts: Vec<Part> = Vec::new();
        let mut functions = HashMap::new();
        let mut bodies: HashMap<String, Compiled> = HashMap::new();
        let mut own_constants: HashMap<String, Dynamic> = HashMap::new();
        let mut constants: Vec<(ImmutableString, Dynamic)> = Vec::new();
        let mut limits: Vec<DeclaredLimit> = Vec::new();
        let mut collections: Vec<DeclaredCollection> = Vec::new();
        let mut schedules: Vec<DeclaredSchedule> = Vec::new();
        for (number, one) in surveyed.iter().enumerate() {
            let mut places = Places::new();
            let before = errors(&faults);
            let names =
                Names { known: &known, constants: &one.constants, procedures: &signatures, privates: &one.privates };
            check::file(one.file, &one.ast, &names, &mut places, &mut faults);
            check::file_level(one.file, &one.ast, &mut faults);
            if errors(&faults) > before {
                continue;
            }
            let Some(ast) = second_pass(&engine, &renaming, one, number, places, &procedures, &mut faults) else {
                continue;
            };
            let declared: Declared = declare::run(&engine, &known, one.file, &ast, &mut faults);
            for (limit, place) in declared.limits {
                gather::declare_limit(&mut limits, limit, one.file, place, &mut faults);
            }
            for (collection, place) in declared.collections {
                gather::declare_collection(&mut collections, collection, one.file, place, &mut faults);
            }
            for (schedule, place) in declared.schedules {
                gather::declare_schedule(&mut schedules, schedule, one.file, place, &mut faults);
            }
            for (name, value, place) in declared.constants {
                own_constants.insert(rename::own(&name, number), value.clone());
                parts.push(Part { file: number, name: name.clone(), is: PartKind::Constant(value.clone(), place) });
                if !constants.iter().any(|(other, _)| *other == name) {
                    constants.push((name, value));
                }
            }
            for definition in ast.iter_fn_def() {
                functions.entry(definition.name.to_string()).or_insert(number);
                let is = PartKind::Function(definition.clone());
                parts.push(Part { file: number, name: definition.name.clone(), is });
                library.set_script_fn(definition.clone());
                let single = check::alone(definition);
                if of_file.get(definition.name.as_str()) == Some(&number) {
                    bodies.insert(definition.name.to_string(), compiled(definition, &single, one.file));
                }
            }
        }
        if errors(&faults) > 0 {
            let parsed: Vec<(&SourceFile, &AST)> = surveyed.iter().map(|one| (one.file, &one.ast)).collect();
            let mut faults = lint::lint(&parsed, None, &faults);
            // Of a place that is wrong beyond doubt, no doubt need be told too.
            let wrong = |one: &Diagnostic| one.severity == Severity::Error;
            let places: BTreeSet<Option<Position>> =
                faults.iter().filter(|fault| wrong(fault)).map(|fault| fault.position.clone()).collect();
            faults.retain(|fault| wrong(fault) || !places.contains(&fault.position));
            return Err(faults);
        }

        let library: Shared<Module> = library.into();
        engine.register_global_module(library.clone());
        let as_value = |name: &String| Some((name.clone(), FnPtr::new(name.as_str()).ok()?.into()));
        own_constants.extend(functions.keys().filter_map(as_value));
        resolve_constants(&mut engine, own_constants);
        let index: HashMap<String, usize> =
            procedures.iter().enumerate().map(|(place, p)| (p.name.clone(), place)).collect();
        let compiled: Vec<Compiled> = procedures.iter().filter_map(|p| bodies.remove(&p.name)).collect();
        debug_assert_eq!(compiled.len(), procedures.len(), "each procedure has a body");
        Ok(Program {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            engine,
            library,
            compiled,
            known,
            constants,
            procedures,
            index,
            limits,
            collections,
            schedules,
            functions,
            parts,
            parsed: surveyed.into_iter().map(|one| one.ast).collect(),
            files,
            doubts: faults,
            warnings: OnceLock::new(),
            budget: budget.clone(),
        })
    }

    /// The procedures, by name.
    pub(crate) fn procedures(&self) -> &[Procedure] {
        &self.procedures
    }

    /// The procedure of this name.
    pub(crate) fn procedure(&self, name: &str) -> Option<&Procedure> {
        self.index.get(name).and_then(|place| self.procedures.get(*place))
    }

    /// The limits that the files declare, by name.
    pub(crate) fn limits(&self) -> &[DeclaredLimit] {
        &self.limits
    }

    /// The collections that the files declare, by name.
    pub(crate) fn collections(&self) -> &[DeclaredCollection] {
        &self.collections
    }

    /// The schedules that the files declare, by name.
    pub(crate) fn schedules(&self) -> &[DeclaredSchedule] {
        &self.schedules
    }

    /// The constants that hold declared limits and other values, by their plain names.
    pub(crate) fn constants(&self) -> impl Iterator<Item = &str> {
        self.constants.iter().map(|(name, _)| name.as_str())
    }

    /// The names of all functions that a script may call, procedures not included.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &str> {
        self.known.names()
    }

    /// Those of them that are ours and not the language's, with methods and fields.
    pub(crate) fn host_names() -> BTreeSet<String> {
        sandbox::host_names()
    }

    /// What a person should look at, by position. It is found out when it is asked for first.
    pub(crate) fn warnings(&self) -> &[Diagnostic] {
        self.warnings.get_or_init(|| {
            // All files were parsed, else there were no program.
            let parsed: Vec<(&SourceFile, &AST)> = self.files.iter().zip(&self.parsed).collect();
            let constants = self.parts.iter().filter_map(|part| match &part.is {
                PartKind::Constant(value, place) => Some((part.file, part.name.clone(), value.clone(), *place)),
                PartKind::Function(_) => None,
            });
            let declared = lint::Declared {
                constants: constants.collect(),
                limits: &self.limits,
                collections: &self.collections,
                procedures: &self.procedures,
            };
            lint::lint(&parsed, Some(&declared), &self.doubts)
        })
    }

    /// The files, in the order they were given.
    pub(crate) fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// What the files have, for comparing programs.
    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The file of a function, by its place among the files.
    pub(super) fn file_number(&self, function: &str) -> Option<usize> {
        self.functions.get(function).copied()
    }

    /// The budget that was compiled in.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    pub(super) fn place_of(&self, procedure: &str) -> Result<usize, Error> {
        self.index.get(procedure).copied().ok_or_else(|| Error::UnknownProcedure {
            name: procedure.to_owned(),
            suggestion: spelling::nearest(procedure, self.procedures.iter().map(|p| p.name.as_str()))
                .map(str::to_owned),
        })
    }

    pub(crate) fn line(&self, path: &str, line: usize) -> Option<&str> {
        self.files.iter().find(|file| *file.path == *path).and_then(|file| file.line(line))
    }
}

impl failure::Places for Program {
    fn file_of(&self, function: &str) -> Option<Arc<str>> {
        self.functions.get(function).and_then(|file| self.files.get(*file)).map(|file| file.path.clone())
    }

    fn line_of(&self, path: &str, line: usize) -> Option<String> {
        self.line(path, line).map(str::to_owned)
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("procedures", &self.procedures.len()).field("files", &self.files.len()).finish()
    }
}

fn errors(faults: &[Diagnostic]) -> usize {
    faults.iter().filter(|fault| fault.severity == Severity::Error).count()
}

/// The first pass: syntax, and what each file names.
fn survey<'a>(engine: &mut Engine, files: &'a [SourceFile], faults: &mut Vec<Diagnostic>) -> Vec<Surveyed<'a>> {
    // Constants are seen by functions only once the second pass knows them; until then any name will do.
    engine.set_strict_variables(false);
    let mut surveyed = Vec::new();
    for file in files {
        if let Some((line, column)) = rename::written_in(&file.text) {
            let narrow = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
            let place = rhai::Position::new(narrow(line), narrow(column));
            faults.push(at(file, place, "reserved_name", "names with `__file` in them are made by the engine"));
            continue;
        }
        match file.compile(|code| engine.compile(code)) {
            Err(error) => faults.push(syntax(file, &error)),
            Ok(ast) => {
                let constants = ast
                    .statements()
                    .iter()
                    .filter_map(|stmt| match stmt {
                        Stmt::Var(variable, ..) => Some(variable.0.name.to_string()),
                        _ => None,
                    })
                    .collect();
                let mut privates: BTreeMap<String, Signatures> = BTreeMap::new();
                for definition in ast.iter_fn_def() {
                    if definition.access.is_private() {
                        let signature = procedure::signature(&definition.name, &definition.params);
                        let signatures = privates.entry(definition.name.to_string()).or_default();
                        signatures.insert(definition.params.len(), signature);
                    }
                }
                surveyed.push(Surveyed { file, ast, constants, privates });
            }
        }
    }
    engine.set_strict_variables(true);
    surveyed
}

/// The procedures of all files in the order of their names, and the file of each.
fn name_procedures(
    surveyed: &[Surveyed],
    known: &Known,
    faults: &mut Vec<Diagnostic>,
) -> (Vec<Procedure>, HashMap<String, usize>) {
    let mut procedures: BTreeMap<String, Procedure> = BTreeMap::new();
    let mut of_file = HashMap::new();
    for (number, one) in surveyed.iter().enumerate() {
        let mut definitions: Vec<_> = one.ast.iter_fn_def().collect();
        definitions.sort_by_key(|definition| definition.body.start_position());
        for definition in definitions {
            let name = definition.name.as_str();
            if !rhai::is_valid_identifier(name) {
                continue; // a closure
            }
            let place = name_position(one.file, definition.body.start_position(), name);
            if definition.this_type.is_some() {
                let message = format!("`{name}` is a method of a type, and only functions can be procedures");
                faults.push(at(one.file, place, "method", message));
                continue;
            }
            if known.has(name, definition.params.len()) {
                let message = format!("`{name}` would hide the host function of this name");
                faults.push(hinted(at(one.file, place, "hides_host_function", message), Some("choose another name")));
                continue;
            }
            if definition.access.is_private() {
                continue;
            }
            let Some(position) = position(&one.file.path, place) else { continue };
            if let Some(other) = procedures.get(name) {
                let message = format!("`{name}` is defined twice: here and at {}", other.position);
                let hint = "procedures of all files share one name space; make one `private` or rename it";
                faults.push(hinted(at(one.file, place, "duplicate_procedure", message), Some(hint)));
                continue;
            }
            let parameters = definition.params.iter().map(ImmutableString::as_str);
            let comments = definition.comments.iter().map(|comment| comment.as_str());
            let (procedure, wrong) = Procedure::new(name, parameters, comments, position);
            faults.extend(wrong.into_iter().map(|message| at(one.file, place, "bad_param", message)));
            procedures.insert(name.to_owned(), procedure);
            of_file.insert(name.to_owned(), number);
        }
    }
    (procedures.into_values().collect(), of_file)
}

/// Where the name of a function stands; the interpreter only keeps where its body begins.
fn name_position(file: &SourceFile, body: rhai::Position, name: &str) -> rhai::Position {
    let Some(line) = body.line() else { return body };
    // The head may take several lines before the body's brace.
    for number in (line.saturating_sub(32).max(1)..=line).rev() {
        let text = file.line(number).unwrap_or_default();
        let limit = if number == line { body.position().unwrap_or(usize::MAX) } else { usize::MAX };
        for (at, _) in text.match_indices(name).collect::<Vec<_>>().into_iter().rev() {
            let column = text[..at].chars().count() + 1;
            let head = text[..at].trim_end();
            let tail = text[at + name.len()..].chars().next();
            if column <= limit && head.ends_with("fn") && !tail.is_some_and(|c| c.is_alphanumeric() || c == '_') {
                let narrow = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
                return rhai::Position::new(narrow(number), narrow(column));
            }
        }
    }
    body
}

/// The second pass: the file again, with its constants and private functions renamed.
fn second_pass(
    engine: &Engine,
    renaming: &rename::Shared,
    one: &Surveyed,
    number: usize,
    places: Places,
    procedures: &[Procedure],
    faults: &mut Vec<Diagnostic>,
) -> Option<AST> {
    let mut scope = Scope::new();
    for name in &one.constants {
        scope.push_constant_dynamic(rename::own(name, number), Dynamic::UNIT);
    }
    for name in one.privates.keys() {
        // Private functions may be used as values, by their renamed names.
        scope.push_constant_dynamic(rename::own(name, number), Dynamic::UNIT);
    }
    for procedure in procedures {
        // So may procedures of all files, which are renamed at these places only.
        scope.push_constant_dynamic(rename::own(&procedure.name, number), Dynamic::UNIT);
    }
    let privates = one.privates.keys().cloned().collect();
    *renaming.lock() = Some(Renaming::new(places, privates, number));
    let compiled = one.file.compile(|code| engine.compile_with_scope(&scope, code));
    *renaming.lock() = None;
    match compiled {
        Ok(mut ast) => {
            ast.set_source(&*one.file.path);
            Some(ast)
        }
        Err(error) => {
            let mut fault = syntax(one.file, &error);
            fault.message = rename::plain(&fault.message);
            faults.push(fault);
            None
        }
    }
}

/// The body of a procedure as one block: evaluated directly, it needs no lookup and keeps the places of errors.
fn compiled(definition: &Shared<rhai::ScriptFuncDef>, single: &AST, file: &SourceFile) -> Compiled {
    let mut statements: Vec<Stmt> = Vec::new();
    single.walk(&mut |path: &[ASTNode]| {
        if let [ASTNode::Stmt(stmt)] = path {
            statements.push((*stmt).clone());
        }
        true
    });
    let (start, end) = (definition.body.start_position(), definition.body.end_position());
    Compiled {
        body: Expr::Stmt(Box::new(StmtBlock::new(statements, start, end))),
        parameters: definition.params.iter().cloned().collect(),
        path: file.path.clone(),
    }
}

/// Lets functions see the constants of their files.
///
/// A function used as a value is one of them: a closure captures it like a variable, and would find none. A private
/// one has the renamed name itself; a procedure is renamed only where it is a value, so that a local of the same
/// name is never taken for it.
fn resolve_constants(engine: &mut Engine, constants: HashMap<String, Dynamic>) {
    #[allow(deprecated)] // Marked volatile, not deprecated; the version of the interpreter is pinned by the lock file.
    engine.on_var(move |name, index, _| {
        // Local variables are found by their index and never come further than this.
        if index != 0 || !rename::is_own(name) {
            return Ok(None);
        }
        Ok(constants.get(name).or_else(|| constants.get(rename::written(name))).cloned())
    });
}
