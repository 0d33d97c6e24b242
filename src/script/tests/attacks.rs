//! Attacks: scripts that try to run for ever, to eat memory or the stack, or to get past their end.

use std::time::Duration;

use crate::time::Stopwatch;

use super::*;

/// Runs each attack on a thread with 2 MiB of stack; every one must end with a spent budget, and soon.
fn stopped(scripts: &[&str]) {
    for script in scripts {
        let text = if script.contains("fn test(") { script.to_string() } else { format!("fn test() {{ {script} }}") };
        let attack = move || {
            let program = match compile(&[("attack.rhai", &text)]) {
                Ok(program) => program,
                Err(faults) => return (format!("load {faults}"), Duration::ZERO),
            };
            let begun = Stopwatch::start();
            let finished = program.run("test", Arguments::default(), call());
            let took = begun.elapsed();
            // The process and the thread go on.
            assert_eq!(
                line(&program.run("test2", Arguments::default(), finished.call).ending).split(' ').next(),
                Some("failed")
            );
            (line(&finished.ending), took)
        };
        let (got, took) = std::thread::Builder::new().stack_size(2 << 20).spawn(attack).unwrap().join().unwrap();
        assert!(got.starts_with("failed budget budget spent"), "{script}: {got}");
        assert!(took < Duration::from_millis(1500), "{script}: took {took:?}");
    }
}

#[test]
fn endless_loops() {
    stopped(&[
        "loop { }",
        "while true { let x = 1; }",
        "let i = 0; do { i += 1; } while true;",
        "loop { try { throw 1 } catch { } }",
        "fn test() { loop { f() } } private fn f() { 1 }",
        "let a = [1, 2, 3]; loop { a.sort(|x, y| { loop { } }); }",
        "let a = [1]; loop { a.map(|x| { loop { } }) }",
        "for i in 0..9223372036854775807 { }",
        "for i in 0..1000000 { try { [1].for_each(|| loop { }) } catch { } }",
    ]);
}

#[test]
fn growth() {
    stopped(&[
        "let s = \"x\"; loop { s += s; }",
        "let s = \"x\"; loop { s = s + s; }",
        "let s = \"x\"; loop { s = `${s}${s}`; }",
        "let s = \"x\"; s.pad(10000000, 'x'); loop { s.pad(s.len() * 2, 'x') }",
        "let a = [1]; loop { a += a; }",
        "let a = []; loop { a.push(a); }",
        "let a = [1]; a.pad(1000000000, 1);",
        "let m = #{}; let i = 0; loop { m[i.to_string()] = m; i += 1; }",
        "let m = #{}; let i = 0; loop { m[`k${i}`] = `value ${i}`; i += 1; }",
        "let b = blob(1000000000, 1); b",
        "let s = \"abc\"; loop { s.replace(\"a\", \"aaaaaaaaaaaaaaaa\"); }",
        "loop { print(\"x\"); }",
        "let s = \"\"; s.pad(60000, 'x'); loop { print(s); }",
    ]);
}

#[test]
fn recursion() {
    stopped(&[
        "fn test() { test() }",
        "fn test() { f(1) } fn f(x) { g(x + 1) } fn g(x) { f(x) }",
        "fn test() { 1 + f() } private fn f() { [f()].map(|x| f()) }",
        "fn test() { f(0) } private fn f(n) { [n].map(|x| [x].map(|y| f(y + 1))) }",
        "fn test() { attempt(|| test()).value }",
        "fn test() { f(#{}) } private fn f(m) { let t = #{ a: [#{ b: [f(#{ a: [m] })] }] }; if true { if true { while true { switch 1 { 1 => { f(t) } } } } } }",
    ]);
}

#[test]
fn slow_operations() {
    stopped(&[
        "let a = []; a.pad(1024, \"x\"); let b = a; loop { let c = a == b; }",
        "let a = []; a.pad(1000, 0); loop { a.sort(); a.reverse(); }",
        "let a = []; a.pad(1000, 0); loop { a.sort(|x, y| -1); }",
        "let a = []; for i in 0..1000 { a.push([i]); } loop { a.index_of(|x| x == [1001]); a.dedup(); }",
        "let s = \"\"; s.pad(60000, 'x'); loop { s.index_of(\"y\"); s.contains(\"z\"); }",
    ]);
}

#[test]
fn ends_that_nothing_gets_past() {
    let cases = [
        ("loop { try { abort(\"out\") } catch { } }", "aborted aborted out"),
        ("fn test() { f() } private fn f() { try { [1].map(|x| deny(\"out\")) } catch { f() } }", "denied denied out"),
        ("[1, 2, 3].map(|x| { try { [1].filter(|y| abort(\"out\")) } catch { } }); loop { }", "aborted aborted out"),
        ("try { [1].map(|x| deny(\"out\")); } catch { abort(\"instead\"); }", "denied denied out"),
        ("let f = || deny(\"out\"); try { [f, f].map(|g| g.call()) } catch { throw \"x\" }", "denied denied out"),
    ];
    for (script, expected) in cases {
        assert_eq!(super::run(script), expected, "{script}");
    }
}

#[test]
fn a_lower_budget_holds() {
    let program = program("fn test() { loop { } }");
    let store = Arc::new(MemoryStore::new());
    let run = |budget: Budget| {
        let call = Call::new(
            Transaction::over(store.clone(), NOW),
            Arc::new(Catalogue::new()),
            Arc::new(Map::new()),
            [0; 32],
            budget,
        );
        line(&program.run("test", Arguments::default(), call).ending)
    };
    let time = Budget { time: Duration::from_millis(5), operations: u64::MAX, ..Budget::default() };
    assert_eq!(run(time), "failed budget budget spent: time (allowed 5 ms)");
    let operations = Budget { operations: 1_000, ..Budget::default() };
    assert_eq!(run(operations), "failed budget budget spent: operations (allowed 1000)");
}

#[test]
fn the_deepest_expressions_fit_the_stack() {
    let nested = |depth: usize| format!("fn test() {{ {}1{} }}", "(1 + ".repeat(depth), ")".repeat(depth));
    let braces = |depth: usize| format!("fn test() {{ {}1{} }}", "if true { ".repeat(depth), " }".repeat(depth));
    let deep = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
        for depth in [5, 20, 31, 100, 5_000] {
            let _ = compile(&[("a.rhai", &nested(depth))]);
            let _ = compile(&[("a.rhai", &braces(depth))]);
        }
        let body = format!("{}f(n + 1){}", "[".repeat(8), "]".repeat(8));
        super::run(&format!("fn test() {{ f(0) }} private fn f(n) {{ {body} }}"))
    });
    let got = deep.unwrap().join().unwrap();
    assert!(got.starts_with("failed budget budget spent: call depth"), "{got}");
    assert!(super::run("let m = #{}; m.g = || m; loop { m.g.call(); }").starts_with("failed"));
}
