//! Tests of the lints: every rule by its examples, the flow of control by cases, and the comments that allow.

use crate::error::{Diagnostic, Severity};

use super::super::{Budget, Natives, Program, SourceFile};
use super::Rule;

/// What is told of some files, by code and line.
fn told(files: &[(&str, &str)]) -> Vec<String> {
    let files = files.iter().map(|(path, text)| SourceFile::new(path, text)).collect();
    let found: Vec<Diagnostic> = match Program::compile(files, &Natives::new(), &Budget::default()) {
        Ok(program) => program.warnings().to_vec(),
        Err(faults) => faults,
    };
    let line = |one: &Diagnostic| one.position.as_ref().map_or(0, |position| position.line);
    found.iter().map(|one| format!("{} {}", line(one), one.code)).collect()
}

fn of(text: &str) -> Vec<String> {
    told(&[("a.rhai", text)])
}

/// What is told of the body of a function, with a few limits and collections declared and used.
fn of_body(body: &str) -> Vec<String> {
    of(&format!(
        "const A = fixed_window(\"a\", 5, \"1m\"); const B = fixed_window(\"b\", 5, \"1m\"); \
         const S = fixed_window(\"s\", 5, \"1m\").shadow(); const C = concurrency(\"c\", 5, \"1m\"); fn keep() {{ [A, B, S, C] }} \
         fn f(k, x) {{\n{body}\n}}"
    ))
}

#[test]
fn each_rule_is_raised_by_its_bad_example_and_not_by_its_good_one() {
    for rule in Rule::all().filter(|rule| !rule.bad.is_empty()) {
        let codes: Vec<String> =
            of(rule.bad).iter().filter_map(|one| one.split(' ').nth(1).map(str::to_owned)).collect();
        assert_eq!(codes, [rule.code], "{}", rule.bad);
        assert_eq!(of(rule.good), Vec::<String>::new(), "{}: {}", rule.code, rule.good);
    }
}

#[test]
fn a_comment_before_its_line_silences_each_lint() {
    for rule in Rule::all().filter(|rule| rule.may_be_allowed()) {
        let told = of(rule.bad);
        let line: usize = told[0].split(' ').next().unwrap().parse().unwrap();
        let mut lines: Vec<String> = rule.bad.lines().map(str::to_owned).collect();
        lines.insert(line - 1, format!("// allow({}): because", rule.code));
        assert_eq!(of(&lines.join("\n")), Vec::<String>::new(), "{}", rule.code);
    }
}

#[test]
fn rules_have_codes_of_their_own_and_explain_themselves() {
    let mut codes: Vec<&str> = Rule::all().map(|rule| rule.code).collect();
    let all = codes.len();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), all);
    for rule in Rule::all() {
        assert!(rule.explanation.ends_with('.') && !rule.summary.ends_with('.'), "{}", rule.code);
        assert_eq!(rule.bad.is_empty(), rule.good.is_empty(), "{}", rule.code);
        assert!(rule.severity == Severity::Error || !rule.bad.is_empty(), "{}", rule.code);
    }
}

#[test]
fn an_abort_that_undoes_a_take_is_told_of() {
    for body in [
        "A.enforce(k);\nabort(\"no\");",
        "let v = A.take(k); if !v.allowed { deny(v); }\nif x { abort(\"no\"); }",
        "if A.take(k).allowed {\nabort(\"no\"); }",
        "if !A.take(k).allowed { log(\"info\", \"no\"); }\nabort(\"no\");",
        "if A.take(k).allowed == true {\nabort(\"no\"); }",
        "let ok = A.take(k).allowed; if ok {\nabort(\"no\"); }",
        "for n in 0..3 { if n > 1 {\nabort(\"no\"); } A.charge(k, 1); }",
        "while x { A.charge(k, 1); if x { break; } }\nabort(\"no\");",
        "switch x { 1 => A.enforce(k), _ => () }\nif x == 2 { abort(\"no\"); }",
        "[1, 2].for_each(|n| A.charge(k, n));\nabort(\"no\");",
        "try { A.enforce(k); insert(\"a\", #{}); } catch {\nabort(\"no\"); }",
        "attempt(|| A.enforce(k));\nabort(\"no\");",
        "attempt(|| { A.enforce(k); deny(\"no\") });\nabort(\"no\");",
        "let v = take_all([[A, k], [B, k]]); if v.allowed && x {\nabort(\"no\"); } v.remaining",
        "A.with(#{ rate: 9 }).enforce(k);\nabort(\"no\");",
    ] {
        assert_eq!(of_body(body), ["3 abort_after_take"], "{body}");
    }
}

#[test]
fn an_abort_that_undoes_nothing_is_not_told_of() {
    for body in [
        "abort(\"no\"); A.enforce(k);",
        "if x { abort(\"no\"); } A.enforce(k);",
        "if !A.take(k).allowed { abort(\"no\"); }",
        "if A.take(k).allowed == false { abort(\"no\"); }",
        "if A.take(k).allowed { return 1; } abort(\"no\");",
        "let v = A.take(k); if !v.allowed { abort(v); }",
        "let v = A.take(k); if v.retry_after > 0 { abort(\"no\"); }",
        "let v = A.take(k); if v.reason != \"\" { abort(\"no\"); }",
        "let ok = A.take(k).allowed; if !ok { abort(\"no\"); }",
        "if !A.take(k).allowed || !B.take(k).allowed { abort(\"no\"); }",
        // Both or neither, by hand.
        "if !A.take(k).allowed { abort(\"a\"); } if !B.take(k).allowed { abort(\"b\"); }",
        "let v = take_all([[A, k], [B, k]]); if !v.violated.is_empty() { abort(v); }",
        "if x { A.enforce(k); } else { abort(\"no\"); }",
        "if x { A.enforce(k); return 1; } abort(\"no\");",
        "switch x { 1 => A.enforce(k), _ => abort(\"no\") }",
        "let v = if x { A.take(k) } else { B.take(k) }; if !v.allowed { abort(v); }",
        "let v = x ?? A.take(k); if !v.allowed { abort(v); }",
        "while !A.take(k).allowed { abort(\"no\"); }",
        "if !A.peek(k).allowed { abort(\"no\"); } A.enforce(k);",
        // A place that is held is given back by the abort, as it should be.
        "let v = C.acquire(k); if x { abort(\"no\"); } v.lease",
        // Of what follows a take only what is in the same attempt is undone.
        "A.enforce(k); attempt(|| { insert(\"a\", #{}); abort(\"no\") }).status",
        "A.enforce(k); A.reset(k); abort(\"no\");",
        "A.enforce(k); deny(\"no\"); abort(\"no\");",
    ] {
        assert_eq!(of_body(body), Vec::<String>::new(), "{body}");
    }
}

#[test]
fn functions_that_take_or_abort_for_others_are_seen_through() {
    let files = |body: &str| {
        told(&[
            (
                "a.rhai",
                &format!(
                    "const A = fixed_window(\"a\", 5, \"1m\");\nprivate fn spend(k) {{ A.enforce(k); }}\n\
                     private fn check(x) {{ if x {{ abort(\"no\"); }} }}\nprivate fn permit(k) {{ if !A.take(k).allowed {{ abort(\"no\"); }} }}\n\
                     private fn ask(k) {{ A.take(k) }}\nprivate fn stop() {{ deny(\"no\"); }}\nfn use_all() {{ check(1); spend(1); stop(); }}\nfn f(k, x) {{\n{body}\n}}"
                ),
            ),
            ("b.rhai", "fn far(x) { if x { abort(\"no\") } }"),
        ])
    };
    for (body, expected) in [
        ("spend(k); check(x);", vec!["9 abort_after_take"]),
        ("spend(k); abort(\"no\");", vec!["9 abort_after_take"]),
        ("spend(k); far(x);", vec!["9 abort_after_take"]),
        ("check(x); spend(k);", vec![]),
        ("permit(k); permit(x);", vec![]),
        ("if !ask(k).allowed { abort(\"no\"); }", vec![]),
        ("let v = ask(k); if !v.allowed { abort(v); }", vec![]),
        ("if x { spend(k); stop(); } abort(\"no\");", vec![]),
        ("A.take(k); stop();", vec![]),
    ] {
        assert_eq!(files(body), expected, "{body}");
    }
}

#[test]
fn a_throw_is_told_of_where_a_failure_was_to_be_counted() {
    for (body, expected) in [
        ("if x { A.charge(k, 1);\nthrow \"wrong\"; }", vec!["3 throw_after_take"]),
        ("A.enforce(k); if x {\nthrow \"wrong\"; } A.reset(k);", vec!["3 throw_after_take"]),
        // The permit of work that then fails is given back, as it should be.
        ("A.enforce(k); if x { throw \"bad\"; }", vec![]),
        ("if !A.take(k).allowed { throw \"full\"; }", vec![]),
        ("try { A.enforce(k); throw \"x\"; } catch { 1 }", vec![]),
        ("throw \"x\"; A.enforce(k);", vec![]),
    ] {
        assert_eq!(of_body(body), expected, "{body}");
    }
}

#[test]
fn a_decision_is_dropped_where_nothing_can_see_it() {
    for body in [
        "A.take(k);\n1",
        "take_all([[A, k], [B, k]]);\n1",
        "let v = A.take(k);\n1",
        "C.acquire(k);\n1",
        "A.with(#{ rate: 9 }).take(k);\n1",
        "A.take(k).allowed;\n1",
        "for n in 0..2 { A.take(k) }",
        "if x { A.take(k); 1 } else { 2 }",
        "if x { A.take(k) }\n1",
        "[1].map(|n| { A.take(n); n })",
        "switch x { 1 => A.take(k), _ => 2 }\n1",
    ] {
        assert_eq!(of_body(body), ["2 dropped_decision"], "{body}");
    }
    for body in [
        "A.take(k)",
        "A.take(k);",
        "if x { A.take(k) } else { B.take(k) }",
        "return A.take(k);",
        "let v = A.take(k); v",
        "let v = A.take(k); [1].map(|n| v.remaining + n)",
        "#{ a: A.take(k) }",
        "S.take(k);\n1",
        "fixed_window(\"z\", 1, \"1m\").shadow().take(k);\n1",
        "if x { A.take(k); deny(\"wrong\"); }\n1",
        "if x { if k == 1 { A.take(k); } deny(\"wrong\"); }\n1",
        "if !A.peek(k).allowed { deny(\"no\"); }\nA.take(k);\n1",
        "if !peek_all([[A, k]]).allowed { deny(\"no\"); }\nA.take(k);\n1",
        "A.charge(k, 1);\n1",
        "A.enforce(k);\n1",
        "[1, 2].map(|n| A.take(n))",
    ] {
        assert_eq!(of_body(body), Vec::<String>::new(), "{body}");
    }
}

#[test]
fn filters_are_planned_as_they_would_be_at_a_call() {
    let of_call = |call: &str| {
        of(&format!(
            "collection(\"users\").index([\"org\", \"at\"]).unique(\"email\");\nfn f(x, y) {{ {call} }}\nfn g(m) {{ insert(\"users\", m) }}"
        ))
    };
    for call in [
        "find(\"users\", #{ name: x })",
        "find_one(\"users\", #{ at: x })",
        "count(\"users\", #{ \"$or\": [#{ org: x }, #{ email: y }] })",
        "update(\"users\", #{ name: x }, #{ name: y })",
        "delete(\"users\", #{ email: #{ \"$ne\": x } })",
        "find(\"users\", #{ name: x }, #{ sort: \"at\" })",
    ] {
        assert_eq!(of_call(call), ["2 scan_only"], "{call}");
    }
    for call in [
        "find(\"users\", #{})",
        "find(\"users\", #{ org: x })",
        "find(\"users\", #{ org: x, name: y })",
        "find(\"users\", #{ email: #{ \"$in\": x } })",
        "find(\"users\", #{ org: #{ \"$gt\": x } })",
        "find(\"users\", #{ _id: x })",
        "exists(\"users\", #{ _id: #{ \"$gt\": x } })",
        "find(\"users\", #{ name: x }, #{ sort: \"org,at\", limit: y })",
        "upsert(\"users\", #{ email: x }, #{ name: y })",
        "let filter = #{ name: x }; find(\"users\", filter)",
        "get(\"users\", x)",
    ] {
        assert_eq!(of_call(call), Vec::<String>::new(), "{call}");
    }
}

#[test]
fn collections_are_looked_for_in_all_files() {
    let users = ("a.rhai", "collection(\"users\");\nconst NAME = \"users\";\nfn f(x) { count(NAME, #{}) }");
    assert_eq!(told(&[users]), Vec::<String>::new());
    assert_eq!(told(&[users, ("b.rhai", "fn g() { count(\"usres\", #{}) }")]), ["1 unknown_collection"]);
    assert_eq!(
        told(&[users, ("b.rhai", "fn g() { count(\"logs\", #{}) }\nfn h() { insert(\"logs\", #{}) }")]),
        Vec::<String>::new()
    );
    // A name that is made while a procedure runs may be any.
    assert_eq!(
        told(&[("a.rhai", "collection(\"users\");\nfn f(name) { count(name, #{}) }\nfn g() { get(\"x\", \"y\") }")]),
        Vec::<String>::new()
    );
}

#[test]
fn limits_are_used_by_name_in_a_list_or_again() {
    for text in [
        "const A = fixed_window(\"a\", 5, \"1m\");\nconst ALL = [A];\nfn f(k) { ALL[0].enforce(k); }",
        "const ALL = #{ a: fixed_window(\"a\", 5, \"1m\") };\nfn f(k) { ALL.a.enforce(k); }",
        "fixed_window(\"a\", 5, \"1m\");\nfn f(k) { fixed_window(\"a\", 5, \"1m\").enforce(k); }",
        "const A = fixed_window(\"a\", 5, \"1m\");\nfn f(k) { [1].map(|n| A.take(n)) }",
    ] {
        assert_eq!(of(text), Vec::<String>::new(), "{text}");
    }
    for text in [
        "const A = fixed_window(\"a\", 5, \"1m\");\nfn f(k) { k }",
        "const ALL = [fixed_window(\"a\", 5, \"1m\")];\nfn f(k) { k }",
        "fixed_window(\"a\", 5, \"1m\");\nfn f(k) { k }",
    ] {
        assert_eq!(of(text), ["1 unused_limit"], "{text}");
    }
    // A constant is seen in its own file only.
    let (a, b) = (
        "const A = fixed_window(\"a\", 5, \"1m\");",
        "const A = fixed_window(\"b\", 5, \"1m\");\nfn f(k) { A.enforce(k); }",
    );
    assert_eq!(told(&[("a.rhai", a), ("b.rhai", b)]), ["1 unused_limit"]);
}

#[test]
fn a_whole_filter_is_one_that_the_caller_hands_over() {
    let of_function = |function: &str| of(&format!("collection(\"a\");\n{function}"));
    assert_eq!(of_function("fn f(where) { update(\"a\", where, #{ x: 1 }) }"), ["2 whole_filter"]);
    for function in [
        "/// @param where filter\nfn f(where) { find(\"a\", where) }",
        "fn f(where) { let where = #{ _id: where }; find(\"a\", where) }",
        "fn f(id) { where_is(#{ _id: id }) }\nprivate fn where_is(filter) { find(\"a\", filter) }",
    ] {
        assert_eq!(of_function(function), Vec::<String>::new(), "{function}");
    }
}

#[test]
fn comments_allow_a_line_or_a_file() {
    for text in [
        "A.take(k); // allow(dropped_decision): a trial\n1",
        "// allow(dropped_decision): a trial\nA.take(k);\n1",
        "// allow(dropped_decision): a trial\n// which goes on for some weeks\nA.take(k);\n1",
        "//! allow(dropped_decision): a trial\nA.take(k);\nA.take(x);\n1",
        "// allow(abort_after_take, dropped_decision): both\nA.take(k); if x { abort(\"no\"); }\n1",
    ] {
        assert_eq!(of_body(text), Vec::<String>::new(), "{text}");
    }
    for (text, expected) in [
        ("// allow(dropped_decision)\n\nA.take(k);\n1", vec!["2 unused_allow", "4 dropped_decision"]),
        ("A.take(k); // allow(abort_after_take)\n1", vec!["2 dropped_decision", "2 unused_allow"]),
        ("// allow(no_such_thing)\n1", vec!["2 unknown_allow"]),
        ("// allow(syntax, unused_allow)\n1", vec!["2 unknown_allow", "2 unknown_allow"]),
        ("let text = \"// allow(no_such_thing)\"; text", vec![]),
        ("/// allow(no_such_thing)\n1", vec![]),
    ] {
        assert_eq!(of_body(text), expected, "{text}");
    }
}

#[test]
fn with_errors_only_the_lints_run_that_need_nothing_else() {
    let a = "const A = fixed_window(\"a\", 5, \"1m\");\nconst U = fixed_window(\"u\", 5, \"1m\"); // allow(unused_limit): the host's\n\
             fn f(k) { A.enforce(k); abort(\"no\"); }";
    assert_eq!(told(&[("a.rhai", a), ("b.rhai", "fn g( {")]), ["3 abort_after_take", "1 syntax"]);
}

#[test]
fn the_shipped_scripts_are_clean() {
    for folder in ["scripts", "src/cli/init"] {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let files = SourceFile::read_folder(&folder).unwrap();
        assert!(!files.is_empty());
        let program = Program::compile(files, &Natives::new(), &Budget::default()).unwrap();
        assert_eq!(program.warnings(), [], "{}", folder.display());
    }
}

/// Deep and wide texts end, and overflow no stack of 2 MiB.
#[test]
fn strange_files_do_not_stop_the_lints() {
    let nested =
        |n: usize, open: &str, inner: &str, close: &str| format!("{}{inner}{}", open.repeat(n), close.repeat(n));
    for body in [
        nested(12, "while x { A.charge(k, 1); if x { ", "abort(\"no\");", " } }"),
        nested(8, "[1].map(|n| { A.charge(n, 1); ", "abort(\"no\")", " });"),
        format!("let n = 1{};", " + 1".repeat(3_000)),
        format!("let n = x{};", ".a".repeat(3_000)),
        format!("if x == 0 {{ 1 }}{}", " else if x == 1 { A.take(k); }".repeat(500)),
        "if x { A.enforce(k); }\n".repeat(1_000),
    ] {
        let run = move || of_body(&body).len();
        let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap();
        assert!(thread.join().is_ok());
    }
}
