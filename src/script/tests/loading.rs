//! What does not load, and what the errors say.

use super::*;

fn faults(files: &[(&str, &str)]) -> String {
    compile(files).err().unwrap_or_else(|| "loads".into())
}

fn one(text: &str) -> String {
    faults(&[("a.rhai", text)])
}

#[test]
fn every_fault_of_every_file_is_reported_at_once() {
    let got = faults(&[
        ("a.rhai", "fn a() { unknown_thing(1) }\nfn b() { nothing }"),
        ("b.rhai", "fn c( { }"),
        ("c.rhai", "const L = fixed_window(\"l\", 0, \"1m\");\nconst M = token_bucket(\"m\", 1, \"1\");"),
    ]);
    for part in [
        "a.rhai:1:10: error: there is no function `unknown_thing`",
        "a.rhai:2:10: error: there is no variable `nothing`",
        "b.rhai:1:7: error:",
        "c.rhai:1:11: error: limit \"l\": rate is 0, must be at least 1",
        "c.rhai:2:11: error: limit \"m\": period is",
    ] {
        assert!(got.contains(part), "{part}\n{got}");
    }
}

#[test]
fn faults_show_line_caret_and_hint() {
    assert_eq!(
        one("fn f() {\n\tlet u = fnid_one(\"users\", #{});\n}"),
        "a.rhai:2:10: error: there is no function `fnid_one`\n 2 | \tlet u = fnid_one(\"users\", #{});\n   | \t        ^\n   = did you mean `find_one`?"
    );
}

#[test]
fn names_are_unique_over_files() {
    let got = faults(&[("a.rhai", "fn f() { }"), ("b.rhai", "fn g() { }\nfn f(x) { }")]);
    assert!(got.starts_with("b.rhai:2:4: error: `f` is defined twice: here and at a.rhai:1:4"), "{got}");
    assert!(one("fn f() { }\nfn f(x) { }").contains("`f` is defined twice: here and at a.rhai:1:4"));
    assert!(one("fn find_one(a, b) { }").contains("a.rhai:1:4: error: `find_one` would hide the host function"));
    assert!(one("private fn insert(a, b) { }").contains("would hide the host function"));
    compile(&[("a.rhai", "fn f() { h() } private fn h() { 1 }"), ("b.rhai", "fn g() { h() } private fn h() { 2 }")])
        .unwrap();
    assert!(
        faults(&[("a.rhai", "private fn h() { }"), ("b.rhai", "fn g() { h() }")])
            .contains("b.rhai:1:10: error: there is no function `h`")
    );
    assert!(
        faults(&[("a.rhai", "const X = 1;"), ("b.rhai", "fn g() { X }")])
            .contains("b.rhai:1:10: error: there is no variable `X`")
    );
}

#[test]
fn files_keep_their_own_constants_and_helpers() {
    let program = compile(&[
        ("a.rhai", "const X = 1; fn a() { [h(), b()] } private fn h() { [1].map(|v| X) }"),
        ("b.rhai", "const X = 2; fn b() { h() } private fn h() { [1].map(|v| X) }"),
    ])
    .unwrap();
    assert_eq!(line(&program.run("a", Arguments::default(), call()).ending), "returned [[1],[2]]");
    let ending = program.run("h", Arguments::default(), call()).ending;
    assert!(line(&ending).starts_with("failed unknown_procedure"), "{}", line(&ending));
}

#[test]
fn only_declarations_stand_at_file_level() {
    for (text, part) in [
        ("let x = 1;", "a.rhai:1:1: error: only constants, limits, collections and schedules can stand at file level"),
        ("print(\"x\");", "only constants"),
        ("insert(\"c\", #{});", "only constants"),
        ("if true { }", "only constants"),
        ("const T = now();", "a.rhai:1:11: error: `now` cannot be used at file level"),
        ("const T = find(\"c\", #{});", "`find` cannot be used at file level"),
        ("const L = fixed_window(\"l\", 1, \"1m\").capcity(3);", "capcity"),
        ("const L = fixed_window(\"l\", 1, \"1m\").capacity(-3);", "capacity is -3"),
        ("const X = 1; fn f() { X = 2; }", "constant"),
        ("const X = [1]; fn f() { X.push(2); }", "`X` is a constant"),
        ("const X = #{}; fn f() { X.a = 2; }", "constant"),
        ("fn f() { collection(\"c\") }", "loads"),
        ("/// @param x int\nfn f(y) { }", "`@param x` names no parameter"),
        ("fn f() { import \"x\" as y; }", "import"),
        ("fn f() { x::y() }", "there is no module `x`"),
        (
            "const L = fixed_window(\"l\", 1, \"1m\"); const M = fixed_window(\"l\", 2, \"1m\");",
            "limit `l` is declared twice with different settings",
        ),
        ("const L = fixed_window(\"l\", 1, \"1m\"); const M = fixed_window(\"l\", 1, \"1m\");", "loads"),
        (
            "collection(\"u\").unique(\"email\").ttl_after(\"at\", \"90d\"); create_index(\"u\", [\"a\", \"b\"]);",
            "loads",
        ),
        ("collection(\"u\").ttl(\"a\"); create_ttl_index(\"u\", \"b\");", "is declared to expire by `a` and by `b`"),
        ("collection(\"u\").unique(5);", "the fields of an index are"),
        ("fn f() { take_al([]) }", "did you mean `take_all`?"),
        ("fn f() { now(1) }", "`now` takes 0 arguments, not 1"),
        ("fn f(x) { } fn g() { f(1, 2) }", "`f(x)` takes 1 argument, not 2"),
        ("/// @param b int?\nfn f(a, b) { } fn g() { f(1, 2, 3) }", "`f(a, b: int?)` takes 2 arguments, not 3"),
        (
            "private fn p(x) { } private fn p(x, y) { } fn g() { p() }",
            "`p(x)` or `p(x, y)` takes 1 or 2 arguments, not 0",
        ),
    ] {
        let got = one(text);
        assert!(got.contains(part), "{text}\n  expected {part}\n  got {got}");
    }
}

#[test]
fn other_dialects_get_a_hint() {
    for (text, hint) in [
        ("proc f() { }", "write `fn` in place of `proc`"),
        ("fn f() { insert(\"c\", {k: 1}) }", "write a map as `#{ name: value }`"),
        ("fn f() { let m = { k: 1 }; m }", "write a map as `#{ name: value }`"),
        ("fn f() { abort \"text\" }", "write `abort(\"text\")` with brackets"),
        ("fn f() { update(\"c\", #{}, #{ $inc: #{ n: 1 } }) }", "write `\"$inc\"`"),
        ("fn f(x) { x == null }", "write `()` for nothing"),
        ("fn f() { eval(\"1\") }", "text is never run as code"),
        ("fn f() { sleep(1) }", "a call has one instant"),
        ("fn f() { let x = 1; if x = 1 { 2 } }", "write `==` to compare"),
        ("fn f() { let x = 1\n x }", "the line before it has no `;`"),
        ("fn f() { if 1 == 1 { 2 \n", "look for a `}`"),
        ("fn f() { 'hello' }", "text stands in double quotes"),
        ("fn f() { let s = \"abc; s }", "end the text with a `\"`"),
        ("fn f() { let x = 5; x++; x }", "write `+= 1`"),
        ("fn f() { for (let i = 0; i < 3; i++) { } }", "write `for i in 0..10 { … }`"),
        ("fn f() { if (1 == 1) return 2; }", "a body stands in braces"),
        ("fn f() { true and false }", "write `&&`"),
        ("fn f() { let x: int = 5; x }", "a variable has no type"),
        ("fn f() { # comment\n 1 }", "a comment begins with `//`"),
        ("fn f() { x = 5; }", "`let x = …` makes one"),
        ("fn f() { now }", "`now` is a function: call it"),
        ("def f(): 1", "write `fn` in place of `def`"),
        ("L = fixed_window(\"a\", 1, \"1m\");", "write `const` before it"),
    ] {
        let got = one(text);
        assert!(got.contains(hint), "{text}\n  expected {hint}\n  got {got}");
    }
}

#[test]
fn an_abort_after_a_take_is_warned_of() {
    let program = program(
        "const L = fixed_window(\"l\", 1, \"1m\");\nfn f(k) {\n  L.enforce(k); if k == 1 { abort(\"no\"); }\n}",
    );
    let warnings: Vec<String> = program.warnings().iter().map(ToString::to_string).collect();
    assert!(
        warnings[0].starts_with("test.rhai:3:29: warning[abort_after_take]: this `abort` undoes the take of line 3"),
        "{warnings:?}"
    );
}

#[test]
fn programs_say_what_they_hold() {
    let program = program(
        "//! File.\nconst L = token_bucket(\"login\", 5, \"1m\").capacity(9);\ncollection(\"users\").unique(\"email\");\n/// Says hello.\nfn hello(name) { name }\nprivate fn p() { }",
    );
    assert_eq!(program.procedures().len(), 1);
    let hello = program.procedure("hello").unwrap();
    assert_eq!((hello.signature.as_str(), hello.documentation.as_str()), ("hello(name)", "Says hello."));
    assert_eq!(hello.position.to_string(), "test.rhai:5:4");
    assert_eq!(program.limits()[0].position.to_string(), "test.rhai:2:1");
    assert_eq!(program.limits()[0].limit.name(), "login");
    assert_eq!(program.collections()[0].spec.name, "users");
    // Nothing uses what it declares.
    let codes: Vec<&str> = program.warnings().iter().map(|warning| warning.code).collect();
    assert_eq!(codes, ["unused_limit", "unused_collection"]);
}
