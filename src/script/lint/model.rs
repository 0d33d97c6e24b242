//! A model of the flow lint: random functions, and every state that a run of them can be in.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use proptest::prelude::*;

use super::super::{Budget, Natives, Program, SourceFile};

/// A statement of a random function.
#[derive(Clone, Debug)]
enum Step {
    Enforce,
    /// A take: what is done where it allows, and where it refuses.
    Take(Vec<Step>, Vec<Step>),
    /// The same, with the decision in a variable and the branches turned.
    Decide(Vec<Step>, Vec<Step>),
    Either(Vec<Step>, Vec<Step>),
    Repeat(Vec<Step>),
    Attempt(Vec<Step>),
    Abort,
    Deny,
    Return,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let leaf = prop_oneof![
        3 => Just(Step::Enforce),
        3 => Just(Step::Abort),
        1 => Just(Step::Deny),
        1 => Just(Step::Return),
    ];
    let step = leaf.prop_recursive(3, 24, 4, |inner| {
        let block = prop::collection::vec(inner, 0..4);
        prop_oneof![
            (block.clone(), block.clone()).prop_map(|(yes, no)| Step::Take(yes, no)),
            (block.clone(), block.clone()).prop_map(|(yes, no)| Step::Decide(yes, no)),
            (block.clone(), block.clone()).prop_map(|(yes, no)| Step::Either(yes, no)),
            block.clone().prop_map(Step::Repeat),
            block.prop_map(Step::Attempt),
        ]
    });
    prop::collection::vec(step, 1..6)
}

/// The text of steps, each abort on a line of its own.
fn write(steps: &[Step], text: &mut String) {
    let two = |head: &str, first: &[Step], second: &[Step], text: &mut String| {
        writeln!(text, "{head} {{").unwrap();
        write(first, text);
        writeln!(text, "}} else {{").unwrap();
        write(second, text);
        writeln!(text, "}}").unwrap();
    };
    for step in steps {
        match step {
            Step::Enforce => writeln!(text, "A.enforce(k);").unwrap(),
            Step::Take(yes, no) => two("if A.take(k).allowed", yes, no, text),
            Step::Decide(yes, no) => two("let v = A.take(k); if !v.allowed", no, yes, text),
            Step::Either(yes, no) => two("if x", yes, no, text),
            Step::Repeat(body) => {
                writeln!(text, "for n in 0..x {{").unwrap();
                write(body, text);
                writeln!(text, "}}").unwrap();
            }
            Step::Attempt(body) => {
                writeln!(text, "attempt(|| {{").unwrap();
                write(body, text);
                writeln!(text, "}});").unwrap();
            }
            Step::Abort => writeln!(text, "abort(\"no\");").unwrap(),
            Step::Deny => writeln!(text, "deny(\"no\");").unwrap(),
            Step::Return => writeln!(text, "return;").unwrap(),
        }
    }
}

/// Whether something is spent, in each run that comes to a point.
type Runs = BTreeSet<bool>;

/// Runs every run at once.
struct Model {
    /// The line that is run.
    line: usize,
    /// The lines of the aborts that undo something in some run.
    told: BTreeSet<usize>,
}

impl Model {
    /// The runs behind some steps; those that return or deny are added to `ended`.
    fn run(&mut self, steps: &[Step], mut runs: Runs, ended: &mut Runs) -> Runs {
        for step in steps {
            self.line += 1;
            let spent = |runs: &Runs| runs.iter().map(|_| true).collect::<Runs>();
            // Where a limit refuses, whatever else was spent is given up on purpose.
            let refused = |runs: &Runs| runs.iter().map(|_| false).collect::<Runs>();
            runs = match step {
                Step::Enforce => spent(&runs),
                Step::Take(yes, no) => self.two((yes, spent(&runs)), (no, refused(&runs)), ended),
                Step::Decide(yes, no) => self.two((no, refused(&runs)), (yes, spent(&runs)), ended),
                Step::Either(yes, no) => self.two((yes, runs.clone()), (no, runs), ended),
                Step::Repeat(body) => {
                    let first = self.line;
                    loop {
                        self.line = first;
                        let mut more = self.run(body, runs.clone(), ended);
                        more.extend(&runs);
                        if more == runs {
                            break;
                        }
                        runs = more;
                    }
                    self.line += 1;
                    runs
                }
                Step::Attempt(body) => {
                    let mut kept = Runs::new();
                    let start = runs.iter().map(|_| false).collect();
                    let returned = self.run(body, start, &mut kept);
                    kept.extend(returned);
                    self.line += 1;
                    // What the attempt spent and kept is spent in the call; one that aborted changed nothing.
                    let with: Runs = runs.iter().flat_map(|spent| kept.iter().map(move |more| spent | more)).collect();
                    with.into_iter().chain(runs).collect()
                }
                Step::Abort => {
                    if runs.contains(&true) {
                        self.told.insert(self.line);
                    }
                    Runs::new()
                }
                Step::Deny | Step::Return => {
                    ended.extend(&runs);
                    Runs::new()
                }
            };
        }
        runs
    }

    fn two(&mut self, first: (&[Step], Runs), second: (&[Step], Runs), ended: &mut Runs) -> Runs {
        let mut runs = self.run(first.0, first.1, ended);
        self.line += 1;
        runs.extend(self.run(second.0, second.1, ended));
        self.line += 1;
        runs
    }
}

proptest! {
    #[test]
    fn an_abort_is_told_of_where_some_run_loses_what_it_spent(steps in steps()) {
        let mut text = "const A = fixed_window(\"a\", 5, \"1m\"); fn f(k, x) {\n".to_owned();
        write(&steps, &mut text);
        text.push('}');
        let mut model = Model { line: 1, told: BTreeSet::new() };
        model.run(&steps, Runs::from([false]), &mut Runs::new());
        let files = vec![SourceFile::new("a.rhai", &text)];
        let program = Program::compile(files, &Natives::new(), &Budget::default()).unwrap();
        let told: BTreeSet<usize> = program
            .warnings()
            .iter()
            .filter(|one| one.code == "abort_after_take")
            .filter_map(|one| one.position.as_ref().map(|position| position.line))
            .collect();
        prop_assert_eq!(told, model.told, "{}", text);
    }
}
