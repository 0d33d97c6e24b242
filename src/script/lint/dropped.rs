//! Dropped decisions: takes after which nobody looks whether they were allowed.

use std::collections::{BTreeMap, BTreeSet};

use rhai::{ASTFlags, Expr, ImmutableString, Position, Stmt};

use crate::error::Diagnostic;

use super::super::diagnostic::{hinted, warning};
use super::chain::{Link, links, root_name};
use super::file::{File, Function, expressions, parts};
use super::summary::Summaries;

/// Calls that decide and refuse nothing by themselves.
const DECIDING: [&str; 4] = ["take", "take_all", "reserve", "acquire"];

/// Tells of decisions that nothing is made of.
pub(super) fn lint(file: &File, number: usize, summaries: &Summaries, out: &mut Vec<Diagnostic>) {
    for function in file.functions.values() {
        let looked_at = peeked(function);
        let names = function.names();
        let mut walk = Walk { file, number, summaries, looked_at, names, found: BTreeMap::new() };
        // A function's last value is its caller's.
        walk.block(&function.body, true, false);
        out.extend(walk.found.into_values());
    }
}

/// A walk through one function.
struct Walk<'a> {
    file: &'a File<'a>,
    number: usize,
    summaries: &'a Summaries,
    /// The limits that it peeks at: what it takes of them is decided already.
    looked_at: BTreeSet<ImmutableString>,
    /// The names that it reads.
    names: BTreeSet<ImmutableString>,
    found: BTreeMap<(usize, usize), Diagnostic>,
}

impl Walk<'_> {
    /// Looks through a block, whose value is `used` or not. What follows it may refuse anyway: then a take counts, and
    /// its answer changes nothing.
    fn block(&mut self, statements: &[Stmt], used: bool, refused: bool) {
        let last = statements.iter().rposition(|stmt| !stmt.is_noop());
        for (at, stmt) in statements.iter().enumerate() {
            let used = used && Some(at) == last;
            let refused = refused || statements[at + 1..].iter().any(|stmt| self.ends_the_call(stmt));
            self.statement(stmt, used, refused);
        }
    }

    fn statement(&mut self, stmt: &Stmt, used: bool, refused: bool) {
        match stmt {
            Stmt::Expr(expr) => match &**expr {
                Expr::Stmt(block) => self.block(block.statements(), used, refused),
                expr => {
                    if !used && !refused {
                        self.dropped(expr);
                    }
                    self.inside(expr);
                }
            },
            Stmt::FnCall(call, position) => {
                if !used && !refused && DECIDING.contains(&call.name.as_str()) && !self.is_own(call) {
                    self.tell(&call.name, *position);
                }
                call.args.iter().for_each(|argument| self.inside(argument));
            }
            Stmt::Var(variable, ..) => {
                let name = &variable.0.name;
                if !refused && !self.names.contains(name) && !name.starts_with('_') {
                    self.dropped(&variable.1);
                }
                self.inside(&variable.1);
            }
            Stmt::Block(block) => self.block(block.statements(), used, refused),
            Stmt::If(parts, _) => {
                self.inside(&parts.expr);
                self.block(parts.body.statements(), used, refused);
                self.block(parts.branch.statements(), used, refused);
            }
            Stmt::Switch(parts, _) => {
                self.inside(&parts.0);
                for arm in &parts.1.expressions {
                    match &arm.rhs {
                        Expr::Stmt(block) => self.block(block.statements(), used, refused),
                        other => {
                            if !used && !refused {
                                self.dropped(other);
                            }
                            self.inside(other);
                        }
                    }
                }
            }
            Stmt::While(parts, _) | Stmt::Do(parts, ..) => {
                self.inside(&parts.expr);
                self.block(parts.body.statements(), false, refused);
            }
            Stmt::For(parts, _) => {
                self.inside(&parts.2.expr);
                self.block(parts.2.body.statements(), false, refused);
            }
            Stmt::TryCatch(parts, _) => {
                self.block(parts.body.statements(), used, refused);
                self.block(parts.branch.statements(), used, refused);
            }
            Stmt::Assignment(assignment) => self.inside(&assignment.1.rhs),
            Stmt::Return(Some(value), ..) | Stmt::BreakLoop(Some(value), ..) => self.inside(value),
            _ => {}
        }
    }

    /// Looks through the blocks of an expression, whose values it uses.
    fn inside(&mut self, expr: &Expr) {
        match expr {
            Expr::Stmt(block) => self.block(block.statements(), true, false),
            other => parts(other).into_iter().for_each(|part| self.inside(part)),
        }
    }

    /// Tells of an expression that is a decision, or a field of one.
    fn dropped(&mut self, expr: &Expr) {
        let links = links(expr);
        let limit = root_name(&links);
        let exempt = limit.is_some_and(|limit| self.file.is_shadow(limit) || self.looked_at.contains(limit));
        let shadow = links.iter().any(|link| matches!(link, Link::Method(call, _) if call.name == "shadow"));
        let decided = links.iter().rev().find(|link| !matches!(link, Link::Property(_)));
        let (call, position) = match decided {
            Some(Link::Method(call, position)) => (*call, *position),
            Some(Link::Root(Expr::FnCall(call, position))) if !self.is_own(call) => (&**call, *position),
            _ => return,
        };
        if DECIDING.contains(&call.name.as_str()) && !exempt && !shadow {
            self.tell(&call.name, position);
        }
    }

    fn tell(&mut self, name: &str, position: Position) {
        let message = format!("nothing looks at the decision of this `{name}`: where it refuses, the work goes on");
        let hint = match name {
            "acquire" => "keep the decision: its `lease` is what renews and gives back the place",
            "take_all" => "use `enforce_all`, which refuses the call, or look at `.allowed`",
            "reserve" => "look at `.allowed`, and wait for its `delay` before the work",
            _ => "use `enforce`, which refuses the call, look at `.allowed`, or `charge` to count without asking",
        };
        let place = (position.line().unwrap_or(0), position.position().unwrap_or(0));
        let fault = hinted(warning(self.file.source, position, "dropped_decision", message), Some(hint));
        self.found.entry(place).or_insert(fault);
    }

    /// Whether a call is one of a function of the files.
    fn is_own(&self, call: &rhai::FnCallExpr) -> bool {
        self.summaries.get(self.number, call).is_some()
    }

    fn ends_the_call(&self, stmt: &Stmt) -> bool {
        let call = match stmt {
            Stmt::FnCall(call, _) => call,
            Stmt::Expr(expr) => match &**expr {
                Expr::FnCall(call, _) => call,
                _ => return false,
            },
            Stmt::Return(_, flags, _) => return flags.intersects(ASTFlags::BREAK),
            _ => return false,
        };
        ["deny", "abort"].contains(&call.name.as_str()) || self.summaries.ends_the_call(self.number, call)
    }
}

/// The limits that a function peeks at, by their constants.
fn peeked(function: &Function) -> BTreeSet<ImmutableString> {
    let mut found = BTreeSet::new();
    expressions(&function.body, &mut |expr| {
        let of_chain = links(expr);
        if of_chain.iter().any(|link| matches!(link, Link::Method(call, _) if call.name == "peek")) {
            found.extend(root_name(&of_chain).cloned());
        }
        // `peek_all([[A, key], [B, key]])` names them in its list.
        if let Expr::FnCall(call, _) = expr
            && call.name == "peek_all"
        {
            found.extend(call.args.iter().flat_map(named));
        }
    });
    found
}

/// The names within an expression.
fn named(expr: &Expr) -> Vec<ImmutableString> {
    match expr {
        Expr::Variable(variable, ..) => vec![variable.1.clone()],
        other => parts(other).into_iter().flat_map(named).collect(),
    }
}
