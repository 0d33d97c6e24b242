//! Flow: which takes may have spent tokens where a function aborts or throws.
//!
//! A small abstract run through each function: both ways of every `if`, a loop until nothing new comes of it. It errs on
//! the quiet side. Where a limit has refused, an abort is the answer to that and no fault; where a condition
//! depends on a decision in a way that is not understood, neither branch is told of.

use std::collections::{BTreeMap, BTreeSet};

use rhai::{ASTFlags, Expr, FnCallExpr, ImmutableString, Position, Stmt};

use crate::error::Diagnostic;

use super::super::diagnostic::{hinted, warning};
use super::chain::{Link, links, root_name};
use super::file::{File, Function, expressions, parts};
use super::state::{Fact, State, Take};
use super::summary::{Summaries, Summary};

/// Calls that spend tokens.
const SPENDING: [&str; 6] = ["take", "take_all", "enforce", "enforce_all", "charge", "reserve"];
/// Calls whose answer is a decision although they spend nothing that a later abort should keep.
const DECIDING: [&str; 5] = ["acquire", "peek", "peek_all", "renew", "release"];
/// Methods that take back what was spent.
const FORGIVING: [&str; 2] = ["reset", "refund"];

/// Expressions and statements looked at for one function; beyond it nothing more is told of.
const MOST_STEPS: usize = 200_000;
/// Closures within closures that are followed.
const MOST_DEPTH: usize = 16;
/// Runs of a loop's body after which nothing new is waited for.
const MOST_RUNS: usize = 4;

/// Tells of aborts and throws that undo what a function has spent.
pub(super) fn lint(file: &File, number: usize, summaries: &Summaries, out: &mut Vec<Diagnostic>) {
    for function in file.functions.values().filter(|function| !function.is_closure()) {
        let mut walk = Walk::new(file, number, summaries);
        walk.summary(function);
        if walk.steps < MOST_STEPS {
            out.extend(walk.found.into_values());
        }
    }
}

/// What a call of a function may do, as far as is known of those that it calls.
pub(super) fn summary(file: &File, number: usize, function: &Function, known: &Summaries) -> Summary {
    Walk::new(file, number, known).summary(function)
}

/// An abstract run through one function.
struct Walk<'a> {
    file: &'a File<'a>,
    number: usize,
    summaries: &'a Summaries,
    /// The limits that the function resets or refunds: what it counts are failures.
    counts_failures: BTreeSet<ImmutableString>,
    found: BTreeMap<(usize, usize), Diagnostic>,
    aborts: bool,
    /// The states in which the function or closure that is run returns.
    returned: State,
    /// The states in which the innermost loop is left.
    left: State,
    /// The states in which the innermost `attempt` is left by a `deny`, which keeps what was spent.
    denied: State,
    /// The states in which the innermost `try` is left by a throw; none outside of any.
    thrown: Option<State>,
    /// The block that is run.
    block: usize,
    steps: usize,
    depth: usize,
}

impl<'a> Walk<'a> {
    fn new(file: &'a File, number: usize, summaries: &'a Summaries) -> Walk<'a> {
        Walk {
            file,
            number,
            summaries,
            counts_failures: BTreeSet::new(),
            found: BTreeMap::new(),
            aborts: false,
            returned: State::nowhere(),
            left: State::nowhere(),
            denied: State::nowhere(),
            thrown: None,
            block: 0,
            steps: 0,
            depth: 0,
        }
    }

    /// Runs a function from its beginning.
    fn summary(&mut self, function: &Function) -> Summary {
        self.counts_failures = forgiven(function);
        let mut state = State::new();
        self.statements(&function.body, &mut state);
        let end = state.join(std::mem::replace(&mut self.returned, State::nowhere()));
        Summary { takes: end.reachable && !end.spent.is_empty(), aborts: self.aborts, returns: end.reachable }
    }

    /// Runs a block; what its last statement tells is what it tells.
    fn statements(&mut self, statements: &[Stmt], state: &mut State) -> Fact {
        let around = std::mem::replace(&mut self.block, statements.as_ptr() as usize);
        let mut hidden: Vec<(ImmutableString, Fact)> = Vec::new();
        let mut last = Fact::Plain;
        for stmt in statements {
            self.steps += 1;
            if self.steps >= MOST_STEPS {
                break;
            }
            if let Stmt::Var(variable, ..) = stmt {
                let name = &variable.0.name;
                hidden.push((name.clone(), state.fact(name)));
            }
            last = self.statement(stmt, state);
            if !state.reachable {
                break;
            }
        }
        // What a variable of this block told is told of the one that it hid again.
        for (name, fact) in hidden.into_iter().rev() {
            state.set_fact(&name, fact);
        }
        self.block = around;
        last
    }

    fn statement(&mut self, stmt: &Stmt, state: &mut State) -> Fact {
        match stmt {
            Stmt::Expr(expr) => return self.value(expr, state),
            Stmt::FnCall(call, position) => return self.call(call, *position, state),
            Stmt::Block(block) => return self.statements(block.statements(), state),
            Stmt::If(parts, _) => {
                let refused = state.refused;
                let (mut yes, mut no) = self.condition(&parts.expr, state.clone());
                let then = self.statements(parts.body.statements(), &mut yes);
                let otherwise = self.statements(parts.branch.statements(), &mut no);
                let fact = match (yes.reachable, no.reachable) {
                    (false, _) => otherwise,
                    (_, false) => then,
                    _ => then.or(otherwise),
                };
                *state = yes.join(no);
                state.refused = refused;
                return fact;
            }
            Stmt::Switch(parts, _) => return self.switch(&parts.0, &parts.1.expressions, parts.1.def_case, state),
            Stmt::While(parts, _) => self.repeat(Some(&parts.expr), parts.body.statements(), state),
            Stmt::Do(parts, ..) => {
                self.repeat(None, parts.body.statements(), state);
                if state.reachable {
                    self.value(&parts.expr, state);
                }
            }
            Stmt::For(parts, _) => {
                self.value(&parts.2.expr, state);
                let nothing = state.clone();
                self.repeat(None, parts.2.body.statements(), state);
                *state = std::mem::replace(state, State::nowhere()).join(nothing);
            }
            Stmt::Var(variable, ..) => {
                let fact = self.value(&variable.1, state);
                state.set_fact(&variable.0.name, fact);
            }
            Stmt::Assignment(assignment) => {
                let fact = self.value(&assignment.1.rhs, state);
                match &assignment.1.lhs {
                    Expr::Variable(variable, ..) if assignment.0.is_op_assignment() => {
                        let before = state.fact(&variable.1);
                        state.set_fact(&variable.1, before.with(fact));
                    }
                    Expr::Variable(variable, ..) => state.set_fact(&variable.1, fact),
                    other => _ = self.value(other, state),
                }
            }
            Stmt::TryCatch(parts, _) => self.attempted(parts.body.statements(), parts.branch.statements(), state),
            Stmt::Return(value, flags, position) => {
                value.iter().for_each(|value| _ = self.value(value, state));
                let ended = std::mem::replace(state, State::nowhere());
                if flags.intersects(ASTFlags::BREAK) {
                    self.throw(*position, ended);
                } else {
                    self.returned = std::mem::replace(&mut self.returned, State::nowhere()).join(ended);
                }
            }
            Stmt::BreakLoop(value, ..) => {
                value.iter().for_each(|value| _ = self.value(value, state));
                let ended = std::mem::replace(state, State::nowhere());
                self.left = std::mem::replace(&mut self.left, State::nowhere()).join(ended);
            }
            _ => {}
        }
        Fact::Plain
    }

    fn switch(&mut self, on: &Expr, arms: &[rhai::BinaryExpr], default: Option<usize>, state: &mut State) -> Fact {
        let refused = state.refused;
        let told = self.value(on, state);
        let entry = if told == Fact::Plain { state.clone() } else { state.clone().after_refusal() };
        let mut all = if default.is_none() { entry.clone() } else { State::nowhere() };
        let mut fact: Option<Fact> = None;
        for arm in arms {
            let (mut taken, _) = self.condition(&arm.lhs, entry.clone());
            let of_arm = self.value(&arm.rhs, &mut taken);
            if taken.reachable {
                fact = Some(fact.map_or(of_arm, |fact| fact.or(of_arm)));
            }
            all = all.join(taken);
        }
        *state = all;
        state.refused = refused;
        fact.unwrap_or(Fact::Plain)
    }

    /// A loop: its body is run until it tells nothing new.
    fn repeat(&mut self, condition: Option<&Expr>, body: &[Stmt], state: &mut State) {
        let around = std::mem::replace(&mut self.left, State::nowhere());
        let mut entry = std::mem::replace(state, State::nowhere());
        let refused = entry.refused;
        for _ in 0..MOST_RUNS {
            let (mut inside, outside) = match condition {
                Some(condition) => self.condition(condition, entry.clone()),
                None => (entry.clone(), State::nowhere()),
            };
            self.statements(body, &mut inside);
            // Without a condition a loop may end behind each run.
            *state = if condition.is_some() { outside } else { inside.clone() };
            let again = entry.clone().join(inside).join(self.left.clone());
            if again == entry {
                break;
            }
            entry = again;
        }
        let left = std::mem::replace(&mut self.left, around);
        *state = std::mem::replace(state, State::nowhere()).join(left);
        state.refused = refused;
    }

    /// `try`: whatever its body may have spent may be spent in its `catch`.
    fn attempted(&mut self, body: &[Stmt], catch: &[Stmt], state: &mut State) {
        let entry = state.clone();
        let around = self.thrown.replace(State::nowhere());
        self.statements(body, state);
        let thrown = std::mem::replace(&mut self.thrown, around).unwrap_or_else(State::nowhere);
        let mut caught = entry.join(state.clone()).join(thrown);
        self.statements(catch, &mut caught);
        *state = std::mem::replace(state, State::nowhere()).join(caught);
    }

    /// The states where a condition holds and where it does not.
    fn condition(&mut self, expr: &Expr, mut state: State) -> (State, State) {
        match expr {
            Expr::And(parts, _) => {
                let mut no = State::nowhere();
                for part in parts.iter() {
                    let (yes, not) = self.condition(part, state);
                    (state, no) = (yes, no.join(not));
                }
                (state, no)
            }
            Expr::Or(parts, _) => {
                let mut yes = State::nowhere();
                for part in parts.iter() {
                    let (is, not) = self.condition(part, state);
                    (state, yes) = (not, yes.join(is));
                }
                (yes, state)
            }
            Expr::FnCall(call, _) if call.is_operator_call() && call.name == "!" && call.args.len() == 1 => {
                let (yes, no) = self.condition(&call.args[0], state);
                (no, yes)
            }
            Expr::BoolConstant(true, _) | Expr::Unit(_) => (state, State::nowhere()),
            Expr::BoolConstant(false, _) => (State::nowhere(), state),
            other => match self.value(other, &mut state) {
                Fact::Plain => (state.clone(), state),
                Fact::Allowed => (state.clone(), state.after_refusal()),
                Fact::Refused => (state.clone().after_refusal(), state),
                Fact::Decision | Fact::Clouded => {
                    let refused = state.after_refusal();
                    (refused.clone(), refused)
                }
            },
        }
    }

    /// Evaluates an expression.
    fn value(&mut self, expr: &Expr, state: &mut State) -> Fact {
        self.steps += 1;
        if self.steps >= MOST_STEPS || !state.reachable {
            return Fact::Plain;
        }
        if let Some((closure, captured)) = self.file.closure(expr) {
            self.closure(closure, captured, state);
            return Fact::Plain;
        }
        match expr {
            Expr::Variable(variable, ..) => state.fact(&variable.1),
            Expr::Dot(..) | Expr::Index(..) => self.chain(expr, state),
            Expr::FnCall(call, position) | Expr::MethodCall(call, position) => self.call(call, *position, state),
            Expr::Stmt(block) => self.statements(block.statements(), state),
            Expr::And(parts, _) | Expr::Or(parts, _) => {
                let refused = state.refused;
                let (yes, no) = self.condition(expr, state.clone());
                let told = parts.iter().fold(Fact::Plain, |all, part| all.with(told(part, state)));
                *state = yes.join(no);
                state.refused = refused;
                told
            }
            Expr::Coalesce(parts, _) => {
                let mut fact = Fact::Plain;
                for (number, part) in parts.iter().enumerate() {
                    let before = state.clone();
                    fact = fact.with(self.value(part, state));
                    if number > 0 {
                        *state = std::mem::replace(state, State::nowhere()).join(before);
                    }
                }
                fact
            }
            other => {
                parts(other).into_iter().for_each(|part| _ = self.value(part, state));
                Fact::Plain
            }
        }
    }

    /// What is asked of a value one after the other.
    fn chain(&mut self, expr: &Expr, state: &mut State) -> Fact {
        let links = links(expr);
        let limit = root_name(&links).cloned();
        let mut fact = Fact::Plain;
        for link in &links {
            fact = match link {
                Link::Root(root) => self.value(root, state),
                Link::Index(index) => {
                    self.value(index, state);
                    if fact == Fact::Plain { Fact::Plain } else { Fact::Clouded }
                }
                Link::Property("allowed") if fact == Fact::Decision => Fact::Allowed,
                Link::Property(_) => {
                    if fact == Fact::Plain {
                        Fact::Plain
                    } else {
                        Fact::Clouded
                    }
                }
                Link::Method(call, position) => {
                    let told = self.method(call, *position, limit.as_ref(), state);
                    if fact == Fact::Plain { told } else { Fact::Clouded }
                }
            };
        }
        fact
    }

    /// A method of a limit, or of something else.
    fn method(
        &mut self,
        call: &FnCallExpr,
        position: Position,
        limit: Option<&ImmutableString>,
        state: &mut State,
    ) -> Fact {
        let told = call.args.iter().fold(Fact::Plain, |all, argument| all.with(self.value(argument, state)));
        match call.name.as_str() {
            name if SPENDING.contains(&name) => {
                state.spend(position, limit.cloned(), self.block);
                Fact::Decision
            }
            name if DECIDING.contains(&name) => Fact::Decision,
            name if FORGIVING.contains(&name) => {
                state.spent.retain(|_, take| take.limit.as_ref() != limit);
                told
            }
            _ => told,
        }
    }

    /// A call of a function.
    fn call(&mut self, call: &FnCallExpr, position: Position, state: &mut State) -> Fact {
        if call.name == "attempt"
            && let Some((closure, captured)) = call.args.first().and_then(|argument| self.file.closure(argument))
        {
            return self.nested(closure, captured, position, state);
        }
        if call.is_operator_call() {
            return self.operator(call, state);
        }
        if let Some(summary) = self.summaries.get(self.number, call) {
            return self.own(call, position, summary, state);
        }
        let told = self.method(call, position, None, state);
        match call.name.as_str() {
            "abort" => {
                // With a decision for a reason it says that a limit refused.
                if told == Fact::Plain {
                    self.abort(position, state, None);
                }
                *state = State::nowhere();
            }
            "deny" => {
                let ended = std::mem::replace(state, State::nowhere());
                self.denied = std::mem::replace(&mut self.denied, State::nowhere()).join(ended);
            }
            _ => {}
        }
        told
    }

    fn operator(&mut self, call: &FnCallExpr, state: &mut State) -> Fact {
        let facts: Vec<Fact> = call.args.iter().map(|argument| self.value(argument, state)).collect();
        let equal = match call.name.as_str() {
            "!" => return facts.first().map_or(Fact::Plain, |fact| fact.negated()),
            "==" | "==?" => true,
            "!=" | "!=?" => false,
            _ => return facts.into_iter().fold(Fact::Plain, Fact::with),
        };
        match (&call.args[..], &facts[..]) {
            ([_, Expr::BoolConstant(wanted, _)], [fact, _]) | ([Expr::BoolConstant(wanted, _), _], [_, fact]) => {
                if equal == *wanted {
                    *fact
                } else {
                    fact.negated()
                }
            }
            _ => facts.into_iter().fold(Fact::Plain, Fact::with),
        }
    }

    /// A call of a function of the files.
    fn own(&mut self, call: &FnCallExpr, position: Position, summary: Summary, state: &mut State) -> Fact {
        let told = call.args.iter().fold(Fact::Plain, |all, argument| all.with(self.value(argument, state)));
        // Whoever gets a decision may well act upon it.
        if summary.aborts && told == Fact::Plain {
            self.abort(position, state, Some(&call.name));
        }
        if !summary.returns {
            *state = State::nowhere();
        } else if summary.takes {
            state.spend(position, None, self.block);
            return Fact::Clouded;
        }
        told
    }

    /// A closure, which may run where it is made, any number of times.
    fn closure(&mut self, closure: &Function, captured: usize, state: &mut State) {
        if self.depth >= MOST_DEPTH {
            return;
        }
        let nothing = state.clone();
        let mut inside = state.clone();
        for parameter in closure.parameters.iter().skip(captured) {
            inside.set_fact(parameter, Fact::Plain);
        }
        let end = self.inside(closure, inside);
        *state = nothing.join(end);
    }

    /// Runs the body of a closure.
    fn inside(&mut self, closure: &Function, mut state: State) -> State {
        let returned = std::mem::replace(&mut self.returned, State::nowhere());
        let left = std::mem::replace(&mut self.left, State::nowhere());
        self.depth += 1;
        self.statements(&closure.body, &mut state);
        self.depth -= 1;
        self.left = left;
        state.join(std::mem::replace(&mut self.returned, returned))
    }

    /// `attempt`: an abort or throw in its closure undoes what the closure did, and nothing else.
    fn nested(&mut self, closure: &Function, captured: usize, position: Position, state: &mut State) -> Fact {
        if self.depth >= MOST_DEPTH {
            return Fact::Clouded;
        }
        let mut inside = state.clone();
        inside.spent.clear();
        for parameter in closure.parameters.iter().skip(captured) {
            inside.set_fact(parameter, Fact::Plain);
        }
        let (aborts, thrown) = (self.aborts, self.thrown.take());
        let denied = std::mem::replace(&mut self.denied, State::nowhere());
        let end = self.inside(closure, inside);
        let end = end.join(std::mem::replace(&mut self.denied, denied));
        (self.aborts, self.thrown) = (aborts, thrown);
        if end.reachable && !end.spent.is_empty() {
            state.spend(position, None, self.block);
            return Fact::Clouded;
        }
        Fact::Plain
    }

    /// An abort, itself or in the function called here.
    fn abort(&mut self, position: Position, state: &State, within: Option<&str>) {
        if !state.reachable {
            return;
        }
        self.aborts |= !state.refused;
        if state.spent.is_empty() {
            return;
        }
        let takes = lines(state.spent.values());
        let message = match within {
            None => format!("this `abort` undoes the take {takes}, so the attempt is not counted"),
            Some(name) => format!("`{name}` may abort, which undoes the take {takes}: the attempt is not counted"),
        };
        let hint = "use `deny` to refuse and keep what was spent";
        self.tell(position, "abort_after_take", message, hint);
    }

    /// A `throw` that may leave the function.
    fn throw(&mut self, position: Position, state: State) {
        if !state.reachable {
            return;
        }
        if let Some(thrown) = self.thrown.take() {
            self.thrown = Some(thrown.join(state));
            return;
        }
        let counted = |take: &&Take| {
            take.block == self.block || take.limit.as_ref().is_some_and(|limit| self.counts_failures.contains(limit))
        };
        let counted: Vec<&Take> = state.spent.values().filter(counted).collect();
        if !counted.is_empty() {
            let takes = lines(counted.into_iter());
            let message = format!("this `throw` undoes the take {takes}, so the failure is not counted");
            self.tell(position, "throw_after_take", message, "use `deny` to refuse and keep the count");
        }
    }

    fn tell(&mut self, position: Position, code: &'static str, message: String, hint: &str) {
        let place = (position.line().unwrap_or(0), position.position().unwrap_or(0));
        let told = || hinted(warning(self.file.source, position, code, message), Some(hint));
        self.found.entry(place).or_insert_with(told);
    }
}

/// What an expression tells that has been evaluated already.
fn told(expr: &Expr, state: &State) -> Fact {
    match expr {
        Expr::Variable(variable, ..) => state.fact(&variable.1),
        Expr::MethodCall(call, _) if asks(&call.name) => Fact::Clouded,
        Expr::FnCall(call, _) if asks(&call.name) => Fact::Clouded,
        other => parts(other).into_iter().fold(Fact::Plain, |all, part| all.with(told(part, state))),
    }
}

fn asks(name: &str) -> bool {
    SPENDING.contains(&name) || DECIDING.contains(&name)
}

/// The limits that a function resets or refunds, by their constants.
fn forgiven(function: &Function) -> BTreeSet<ImmutableString> {
    let mut found = BTreeSet::new();
    expressions(&function.body, &mut |expr| {
        if let Expr::Dot(..) = expr {
            let links = links(expr);
            let forgives =
                |link: &Link| matches!(link, Link::Method(call, _) if FORGIVING.contains(&call.name.as_str()));
            if links.iter().any(forgives) {
                found.extend(root_name(&links).cloned());
            }
        }
    });
    found
}

/// Where takes stand: `of line 3`, or `of lines 3 and 5`.
fn lines<'t>(takes: impl Iterator<Item = &'t Take>) -> String {
    let lines: BTreeSet<usize> = takes.map(|take| take.line).collect();
    let texts: Vec<String> = lines.iter().map(usize::to_string).collect();
    match texts.split_last() {
        None => String::new(),
        Some((one, [])) => format!("of line {one}"),
        Some((last, others)) => format!("of lines {} and {last}", others.join(", ")),
    }
}
