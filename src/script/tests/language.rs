//! What procedures say and how they end: rows of script and ending.

use super::*;

/// Runs rows and shows every one that differs.
fn rows(rows: &[(&str, &str)]) {
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|(script, expected)| {
            let got = super::run(script);
            (got != *expected).then(|| format!("{script}\n   expected {expected}\n   got      {got}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_four_outcomes() {
    rows(&[
        ("1 + 1", "returned 2"),
        ("return #{ a: [1, 2.0, ()] };", r#"returned {"a":[1,2.0,null]}"#),
        ("", "returned null"),
        ("deny(\"no\"); 1", "denied denied no"),
        ("deny()", "denied denied "),
        ("abort(#{ code: \"x\", message: \"m\" })", "aborted x m"),
        ("throw #{ code: \"mine\", message: \"m\", extra: 1 }", "failed mine m"),
        ("throw \"text\"", "failed script text"),
        ("throw 5", "failed script thrown: 5"),
        ("deny(5)", "failed bad_refusal a refusal is a text, a map or a decision, not int"),
        (
            "deny(#{ mesage: \"m\" })",
            "failed bad_refusal a refusal has no `mesage`: it has code, message, retry_after and data",
        ),
    ]);
}

#[test]
fn refusals_cannot_be_caught() {
    rows(&[
        ("try { deny(\"no\"); } catch { } 1", "denied denied no"),
        ("[1, 2].map(|x| deny(\"no\")); 1", "denied denied no"),
        ("try { [1, 2].map(|x| abort(\"no\")); } catch { } 1", "aborted aborted no"),
        ("try { [2, 1].sort(|a, b| abort(\"no\")); } catch { } insert(\"c\", #{}); 1", "aborted aborted no"),
        ("let a = [2, 1]; try { a.sort(|x, y| deny(\"no\")); } catch { } 1", "denied denied no"),
        (
            "fn test() { helper(); 1 } private fn helper() { try { deny(\"a\") } catch { abort(\"b\") } }",
            "denied denied a",
        ),
    ]);
}

#[test]
fn attempts_are_nested_transactions() {
    rows(&[
        ("attempt(|| 5).value", "returned 5"),
        ("attempt(|| { insert(\"c\", #{}); abort(\"no\") }).status + count(\"c\", #{})", "returned \"aborted0\""),
        ("attempt(|| { insert(\"c\", #{}); deny(\"no\") }).status + count(\"c\", #{})", "returned \"denied1\""),
        ("attempt(|| { insert(\"c\", #{}); throw \"x\" }).message + count(\"c\", #{})", "returned \"x0\""),
        ("attempt(|| { insert(\"c\", #{}); 1 }).status + count(\"c\", #{})", "returned \"returned1\""),
        ("attempt(|| { attempt(|| abort(\"in\")); deny(#{ code: \"out\" }) }).code", "returned \"out\""),
        ("attempt(|| { loop { } }); 1", "failed budget budget spent: operations (allowed 200000)"),
        (
            "let x = attempt(|| throw #{ code: \"c\", message: \"m\", a: 1 }); [x.status, x.code, x.message, x.data.a]",
            r#"returned ["failed","c","m",1]"#,
        ),
    ]);
}

#[test]
fn strictness() {
    rows(&[
        ("() < 3", "failed script cannot compare () with int by `<`"),
        ("\"5\" < 3", "failed script cannot compare string with int by `<`"),
        ("\"5\" == 5", "failed script cannot compare string with int by `==`"),
        ("true == 1", "failed script cannot compare bool with int by `==`"),
        ("[] == #{}", "failed script cannot compare array with map by `==`"),
        (
            "[1 == (), () == (), () != 1, #{} != (), 1.5 > 1, 2 == 2.0, \"a\" < \"b\", 'a' < 'b']",
            "returned [false,true,true,true,true,true,true,true]",
        ),
        (
            "[[1, \"a\"].contains(\"a\"), 3 in [1, \"x\", 3], [1, 2] == [1, 2], #{ a: 1 } == #{ a: 2 }]",
            "returned [true,true,true,false]",
        ),
        ("#{ a: 1 }.b", "failed script the map has no property `b`"),
        ("#{ a: 1 }.get(\"b\")", "returned null"),
        ("let x = 1; if x { 2 }", "failed script expected bool, not int"),
        ("9223372036854775807 + 1", "failed script addition overflow: 9223372036854775807 + 1"),
        ("let a = [1]; a[5]", "failed script index 5 is outside an array of 1"),
        ("let x = 1; x.foo", "failed script a value of type int has no property `foo`"),
    ]);
}

#[test]
fn constants_are_seen_by_every_function_of_their_file() {
    rows(&[
        ("const MAX = 3; fn test() { MAX + one() } private fn one() { MAX }", "returned 6"),
        ("const MAX = 3; fn test() { let MAX = 5; MAX }", "returned 5"),
        ("const MAX = 3; fn test() { [1, 2].map(|x| x + MAX) }", "returned [4,5]"),
        ("const MAX = 3; fn test() { let y = 1; let f = |x| x + MAX + y; f.call(1) }", "returned 5"),
        // Named twice in one closure, in a closure within one, and beside a local of the same name elsewhere.
        ("const MAX = 3; fn test() { [1, 2].map(|x| x + MAX + MAX) }", "returned [7,8]"),
        ("const MAX = 3; fn test() { [1].map(|x| [x + MAX].map(|y| y + MAX + MAX)[0] + MAX) }", "returned [13]"),
        (
            "const MAX = 3; fn test() { let a = [1].map(|x| x + MAX + MAX); let MAX = 10; a + [1].map(|x| x + MAX + MAX) }",
            "returned [7,21]",
        ),
        ("const MAX = 3; fn test() { [1].map(|MAX| [1].map(|y| y + MAX + MAX)[0]) }", "returned [3]"),
        (
            "fn test() { [1, 2].map(|x| two(x) + [x].map(two)[0] + [x].map(two)[0]) } private fn two(x) { x * 2 }",
            "returned [6,12]",
        ),
        // Functions as values, defined before and after, of their own file and public.
        ("fn test() { [1].map(|x| [x].map(two)[0]) } fn two(x) { x * 2 }", "returned [2]"),
        ("fn two(x) { x * 2 } fn test() { let f = two; [1].map(two) + [2].map(|x| [x].map(f)[0]) }", "returned [2,4]"),
        ("fn two(x) { x * 2 } fn test() { let two = 5; two + two(1) }", "returned 7"),
        ("fn test() { let two = 5; [1].map(|x| x + two + two) } fn two(x) { x * 2 }", "returned [11]"),
        ("const MAX = 3; fn test() { `${MAX}${one() == 3}` } private fn one() { MAX }", "returned \"3true\""),
        (
            "let a = 1; let b = 2.5; [a + 1 < 3 && b >= a, !(a == b), a < b == true, -a <= 0, a in [1] == true]",
            "returned [true,true,true,true,true]",
        ),
        ("const A = 1; const B = A + 1; fn test() { `${B}-${A}` }", "returned \"2-1\""),
        ("const M = #{ a: [1] }; fn test() { M.a[0] }", "returned 1"),
        ("const TWICE = |x| x * 2; fn test() { TWICE.call(4) }", "returned 8"),
        (
            "const L = fixed_window(\"l\", 2, \"1m\"); fn test() { [L.take(\"k\").allowed, take_all([[L, \"k\"]]).remaining, L.take(\"k\").reason] }",
            "returned [true,0,\"limited\"]",
        ),
        ("fn test() { two(1) } private fn two(x) { [x].map(three) } private fn three(x) { x * 3 }", "returned [3]"),
    ]);
}

#[test]
fn limits_and_decisions() {
    rows(&[
        (
            "fixed_window(\"w\", 1, seconds(60)).take(\"k\")",
            r#"returned {"allowed":true,"delay":0,"limit":1,"reason":"","remaining":0,"reset_at":1767225660000,"retry_after":0,"used":1,"violated":[],"would_refuse":[]}"#,
        ),
        ("let l = token_bucket(\"w\", 1, \"1m\"); l.enforce(); 1", "returned 1"),
        ("let l = token_bucket(\"w\", 1, \"1m\"); l.take(1); l.enforce(1)", "denied rate_limited w: try again in 1m"),
        (
            "let l = token_bucket(\"w\", 1, \"1m\"); deny(l.take(\"a\", 2))",
            "denied rate_limited w: this can never be allowed",
        ),
        (
            "let l = token_bucket(\"w\", 1, \"1m\"); l.take(())",
            "failed bad_key key is (), must be a string, an integer or an array of those",
        ),
        (
            "let l = token_bucket(\"w\", 1, \"1m\"); l.take(1.5)",
            "failed bad_key key is a float, must be a string, an integer or an array of those",
        ),
        (
            "let l = token_bucket(\"w\", 1, \"1m\"); l.take([])",
            "failed bad_key key is an empty array, must have at least one part; leave the key out for the global bucket",
        ),
        (
            "let l = token_bucket(\"w\", 1, \"1m\"); l.take(\"a\", 0)",
            "failed bad_cost cost is 0, must be a whole number from 1 up",
        ),
        (
            "let l = token_bucket(\"w\", 1, \"1m\"); l.take(\"a\", \"1\")",
            "failed bad_cost cost is \"1\", must be a whole number from 1 up",
        ),
        (
            "let l = token_bucket(\"w\", 1, \"1m\"); l.take(\"a\", 1.0)",
            "failed bad_cost cost is 1.0, must be a whole number from 1 up",
        ),
        (
            "let l = token_bucket(\"w\", 2, \"1m\"); l.take([\"a\", 1]); l.refund([\"a\", 1], 1); l.charge(\"b\", 2); l.reset(\"b\"); l.block(\"c\", \"1m\"); [l.peek([\"a\", 1]).remaining, l.peek(\"b\").used, l.take(\"c\").reason, l.name, l.name()]",
            r#"returned [2,0,"blocked","w","w"]"#,
        ),
        ("token_bucket(\"w\", 0, \"1m\")", "failed bad_limit limit \"w\": rate is 0, must be at least 1"),
        (
            "try { token_bucket(\"w\", 0, \"1m\") } catch (e) { return [e.code, e.field, e.value]; }",
            r#"returned ["bad_limit","rate","0"]"#,
        ),
        (
            "let d = fixed_window(\"w\", 1, 1000).take(\"a\"); [d == d, `${d.allowed}`, type_of(d)]",
            r#"returned [true,"true","decision"]"#,
        ),
        (
            "enforce_all([[fixed_window(\"a\", 1, 1000), 1], [fixed_window(\"b\", 1, 1000), 1, 2]])",
            "denied rate_limited b: this can never be allowed",
        ),
        ("take_all([])", "failed bad_list the list of limits is empty: name at least one `[LIMIT, key]`"),
        ("take_all([1])", "failed bad_list each item of the list is `[LIMIT, key]` or `[LIMIT, key, cost]`"),
        (
            "insert(\"c\", #{ l: fixed_window(\"a\", 1, 1000) })",
            "failed bad_document a limit is not data: keep its name instead",
        ),
        (
            "insert(\"c\", #{ d: fixed_window(\"a\", 1, 1000).take(1) }); find_one(\"c\", #{}).d.allowed",
            "returned true",
        ),
        (
            "fixed_window(\"a\", 1, 1000)",
            "failed bad_value `test` cannot return this: a limit is not data: keep its name instead",
        ),
    ]);
}

#[test]
fn documents() {
    rows(&[
        (
            "let id = insert(\"u\", #{ a: 1 }); let u = get(\"u\", id); update(\"u\", #{ a: 1 }, #{ \"$inc\": #{ a: 2 } }); [u.a, get(\"u\", id).a, count(\"u\", #{ a: #{ \"$gte\": 3 } }), exists(\"u\", #{ a: 1 })]",
            "returned [1,3,1,false]",
        ),
        (
            "insert(\"u\", #{ n: 2 }); insert(\"u\", #{ n: 1 }); find(\"u\", #{}, #{ sort: \"n\", limit: 1 })[0].n",
            "returned 1",
        ),
        (
            "upsert(\"u\", #{ k: 1 }, #{ v: 2 }); upsert(\"u\", #{ k: 1 }, #{ v: 3 }); [find_one(\"u\", #{ k: 1 }).v, delete_one(\"u\", #{}), delete(\"u\", #{}), find_one(\"u\", #{})]",
            "returned [3,1,0,null]",
        ),
        ("try { insert(\"u\", #{ \"$x\": 1 }) } catch (e) { return e.code; }", "returned \"bad_document\""),
        (
            "try { insert(\"u\", #{ _id: \"a\" }); insert(\"u\", #{ _id: \"a\" }) } catch (e) { return e.code; }",
            "returned \"unique_violation\"",
        ),
        (
            "for i in 0..100 { insert(\"u\", #{ a: 1, b: 2, c: 3, d: 4, e: `text ${i}` }) } find(\"u\", #{}).len()",
            "returned 100",
        ),
        (
            "let s = \"\"; s.pad(60000, 'x'); for i in 0..4 { insert(\"u\", #{ s: s }); } find(\"u\", #{}).len()",
            "returned 4",
        ),
        ("find(\"u\", 5)", "failed script `find` cannot take (string, int)"),
        (
            "parse_json(`{\"a\":[{\"$gt\":1}]}`)",
            "failed bad_json the JSON holds the key `$gt`: only a procedure's own text may make operators",
        ),
        ("[parse_json(\"1.0\"), parse_json(\"1\"), to_json(#{ a: 1.0 })]", r#"returned [1.0,1,"{\"a\":1.0}"]"#),
    ]);
}

#[test]
fn time_values_and_the_caller() {
    rows(&[
        (
            "[now(), seconds(1), minutes(1), hours(1), days(1), duration(\"1h30m\"), seconds(0.5)]",
            "returned [1767225600000,1000,60000,3600000,86400000,5400000,500]",
        ),
        (
            "days(9223372036854775807)",
            "failed bad_time days(9223372036854775807) is more milliseconds than can be counted",
        ),
        (
            "[format_time(now()), parse_time(\"2026-01-01T00:00:00Z\") == now(), start_of(\"day\", now() + 5)]",
            r#"returned ["2026-01-01T00:00:00Z",true,1767225600000]"#,
        ),
        (
            "[lower(\"ÄB\"), upper(\"a\"), trimmed(\" x \"), \"abc\".starts_with(\"ab\"), starts_with(\"abc\", \"b\")]",
            r#"returned ["äb","A","x",true,false]"#,
        ),
        ("lower(5)", "failed bad_value `lower` takes a string, not int"),
        ("[ip_key(caller(\"ip\")), caller(\"nothing\"), caller().plan]", r#"returned ["192.0.2.1",null,"free"]"#),
        ("ip_key(\"x\")", "failed bad_address `x` is not an IP address"),
        (
            "[secure_eq(\"a\", \"a\"), secure_eq(\"a\", \"b\"), sha256(\"abc\").sub_string(0, 8), hmac_sha256(\"key\", \"The quick brown fox jumps over the lazy dog\").sub_string(0, 8)]",
            r#"returned [true,false,"ba7816bf","f7bc83f4"]"#,
        ),
        ("secure_eq((), ())", "failed bad_value `secure_eq` compares two strings, not () and ()"),
        (
            "let n = random_int(1, 6); let r = random(); n >= 1 && n <= 6 && r >= 0.0 && r < 1.0 && random_int(3, 3) == 3 && uuid() != uuid()",
            "returned true",
        ),
        ("random_int(2, 1)", "failed bad_value random_int(2, 1): the first must not be above the second"),
    ]);
}

#[test]
fn what_is_not_there() {
    for script in
        ["eval(\"1\")", "import \"x\" as x;", "sleep(1)", "timestamp()", "exit()", "open_file(\"x\")", "parse_time()"]
    {
        let got = super::run(script);
        assert!(got.starts_with("load "), "{script}: {got}");
    }
}

#[test]
fn equal_seeds_give_equal_runs() {
    let program = program("fn test() { [uuid(), random(), random_int(0, 1000), insert(\"c\", #{})] }");
    let run = || line(&program.run("test", Arguments::default(), call()).ending);
    assert_eq!(run(), run());
}

#[test]
fn logs_belong_to_the_call() {
    let program = program("fn test() { print(\"a\"); log(\"warn\", \"b\", #{ n: 1 }); debug(5); }");
    let finished = program.run("test", Arguments::default(), call());
    let lines: Vec<_> = finished.call.log.iter().map(|line| (line.level, line.message.as_str())).collect();
    assert_eq!(lines, [(Level::Info, "a"), (Level::Warn, "b"), (Level::Info, "5")]);
}

#[test]
fn errors_say_where_and_how_they_got_there() {
    let program = compile(&[
        ("a.rhai", "fn outer(x) {\n    inner(x)\n}"),
        (
            "b.rhai",
            "fn inner(x) {\n    let y = [x].map(|v| helper(v));\n    y\n}\nprivate fn helper(v) {\n    v.missing\n}",
        ),
    ])
    .unwrap();
    let finished = program.run("outer", Arguments::Positional(vec![Value::Map(Map::new())]), call());
    let Ending::Failed(error) = finished.ending else { panic!() };
    assert_eq!(
        error.to_string(),
        "b.rhai:6:7: the map has no property `missing`\n 6 |     v.missing\n   |       ^\n   \
         = use `.get(\"missing\")`, which gives `()`, or `\"missing\" in map` when it may be missing\n   \
         in helper at b.rhai:6:7\n   in a closure at b.rhai:2:25\n   in inner at b.rhai:2:17\n   in outer at a.rhai:2:5"
    );
    let finished = compile(&[("a.rhai", "fn f() {\n  g()\n}\nfn g() {\n  find(\"c\", #{ \"$bad\": 1 })\n}")])
        .unwrap()
        .run("f", Arguments::default(), call());
    let Ending::Failed(crate::error::Error::Script(error)) = finished.ending else { panic!() };
    assert_eq!((error.code.as_str(), error.position.unwrap().to_string().as_str()), ("bad_filter", "a.rhai:5:3"));
}

#[test]
fn budgets_of_the_transaction_say_where() {
    let text = "fn test() {\n  for i in 0..2000 {\n    try { insert(\"c\", #{ i: i }) } catch { }\n  }\n  1\n}";
    let finished = program(text).run("test", Arguments::default(), call());
    assert_eq!(line(&finished.ending), "failed budget budget spent: documents written (allowed 1000)");
    let text = "fn test() {\n  for i in 0..2000 {\n    insert(\"c\", #{ i: i });\n  }\n}";
    let Ending::Failed(crate::error::Error::Budget(error)) =
        program(text).run("test", Arguments::default(), call()).ending
    else {
        panic!()
    };
    assert_eq!(error.position.unwrap().to_string(), "test.rhai:3:5");
}

#[test]
fn arguments_are_checked_at_the_door() {
    let program = program(
        "/// @param n int\n/// @param note string?\nfn test(n, note) { [n, note] }\n/// @param f filter\nfn look(f) { f }\nfn any(x) { x }",
    );
    let positional = |procedure: &str, json: &str| {
        let Value::Array(values) = Value::from_json(json).unwrap() else { panic!() };
        line(&program.run(procedure, Arguments::Positional(values), call()).ending)
    };
    let named = |procedure: &str, json: &str| {
        let Value::Map(map) = Value::from_json(json).unwrap() else { panic!() };
        line(&program.run(procedure, Arguments::Named(map), call()).ending)
    };
    let usage = "\n   usage: test(n: int, note: string?)";
    assert_eq!(positional("test", "[1]"), "returned [1,null]");
    assert_eq!(named("test", r#"{"n":1,"note":"x"}"#), r#"returned [1,"x"]"#);
    for (got, why) in [
        (positional("test", "[]"), "`n` is missing"),
        (positional("test", "[1,2,3]"), "3 arguments are given, and it takes 2"),
        (positional("test", "[1.0]"), "`n` takes int, not float"),
        (named("test", r#"{"n":1,"nota":"x"}"#), "it has no parameter `nota`: did you mean `note`?"),
        (named("test", r#"{"m":1}"#), "it has no parameter `m`"),
    ] {
        assert_eq!(got, format!("failed bad_arguments bad arguments for test: {why}{usage}"));
    }
    assert_eq!(positional("look", r#"[{"a":{"$gt":1}}]"#), r#"returned {"a":{"$gt":1}}"#);
    assert!(positional("any", r#"[[{"a":{"$gt":1}}]]"#).contains("holds the key `$gt`"));
    let large = format!("[\"{}\"]", "x".repeat(300 << 10));
    assert!(positional("any", &large).contains("larger than 262144 bytes"));
    assert_eq!(
        line(&program.run("tset", Arguments::default(), call()).ending),
        "failed unknown_procedure no procedure is named `tset`: did you mean `test`?"
    );
}

#[test]
fn sessions_keep_their_variables() {
    let program = program(
        "const MAX = 2; const L = fixed_window(\"l\", 2, \"1m\"); fn double(x) { x * MAX } private fn hidden() { 1 }",
    );
    let store = Arc::new(MemoryStore::new());
    let mut session = Session::new(&program);
    let mut eval = |snippet: &str| line(&program.eval(snippet, "<stdin>", &mut session, call_on(&store)).ending);
    assert_eq!(eval("let x = 5;"), "returned null");
    assert_eq!(eval("double(x) + MAX"), "returned 12");
    assert_eq!(eval("x += 1; throw \"no\""), "failed script no");
    assert_eq!(eval("x"), "returned 5");
    assert_eq!(eval("L.take(\"a\").allowed"), "returned true");
    assert_eq!(eval("fn f(y) { y + 1 } f(x)"), "returned 6");
    assert_eq!(eval("[1].map(|v| v + x + MAX)"), "returned [8]");
    assert_eq!(eval("deny(\"no\")"), "denied denied no");
    assert!(eval("hidden()").contains("there is no function `hidden`"), "{}", eval("hidden()"));
    assert!(eval("duble(1)").contains("did you mean `double`?"), "{}", eval("duble(1)"));
    assert!(eval("let y = ;").contains("<stdin>:1:9"), "{}", eval("let y = ;"));
    assert!(eval("nope").contains("nope"), "{}", eval("nope"));
    assert!(eval("() < 3").contains("cannot compare"));
    assert_eq!(session.variable("x"), Some(Value::Int(5)));
}

#[test]
fn natives_are_called_and_their_panics_caught() {
    let mut natives = Natives::new();
    natives.register("add", 2, |args| Ok(Value::Int(args[0].as_int().unwrap() + args[1].as_int().unwrap()))).unwrap();
    natives.register("fails", 0, |_| Err("on purpose".into())).unwrap();
    assert!(natives.register("add", 2, |_| Ok(Value::Null)).is_err());
    let text = "fn sum() { add(1, 2) } fn bad() { add(1, \"x\") } fn caught() { try { fails() } catch (e) { return e.message; } } fn after() { try { add(1, ()) } catch { } insert(\"c\", #{}); 1 }";
    let program = Program::compile(vec![SourceFile::new("a.rhai", text)], &natives, &Budget::default()).unwrap();
    let run = |name: &str| line(&program.run(name, Arguments::default(), call()).ending);
    assert_eq!(run("sum"), "returned 3");
    assert_eq!(run("bad"), "failed panic the host function `add` panicked");
    assert_eq!(run("caught"), "returned \"on purpose\"");
    assert_eq!(run("after"), "returned 1");
}

#[test]
fn detached_runs_commit_each_host_function() {
    struct Each(Arc<MemoryStore>);
    impl Autocommit for Each {
        fn begin(&self) -> Result<Box<Call>, crate::error::Error> {
            Ok(call_on(&self.0))
        }
        fn finish(&self, call: Box<Call>) -> Result<(), crate::error::Error> {
            call.transaction.commit().unwrap();
            Ok(())
        }
    }
    let store = Arc::new(MemoryStore::new());
    let text = "const L = fixed_window(\"l\", 1, \"1m\");\nfn test_it() { insert(\"c\", #{}); L.take(\"k\"); attempt(|| { insert(\"c\", #{}); abort(\"x\") }); print(\"hi\"); [count(\"c\", #{}), L.peek(\"k\").remaining] }\nfn test_bad() { L.enforce(\"k\") }\nfn test_loop() { loop { } }";
    let program = program(text);
    let detached = |name: &str| {
        program.run_detached(name, Arguments::default(), &Budget::default(), Arc::new(Each(store.clone())))
    };
    let (value, log) = detached("test_it");
    assert_eq!(value.unwrap().to_string(), "[1,0]");
    assert_eq!(log[0].message, "hi");
    assert!(detached("test_bad").0.unwrap_err().to_string().contains("refused outside of a call"));
    assert_eq!(detached("test_loop").0.unwrap_err().code(), "budget");
}

#[test]
fn programs_are_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    let program =
        Arc::new(program("const L = fixed_window(\"l\", 100, \"1m\"); fn test() { L.take(\"k\").remaining }"));
    shared(&program);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let program = program.clone();
            std::thread::spawn(move || line(&program.run("test", Arguments::default(), call()).ending))
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), "returned 99");
    }
}

#[test]
fn runs_may_nest_and_restore_what_was_current() {
    let inner = Arc::new(program("fn test() { deny(\"inner\") }"));
    let mut natives = Natives::new();
    let nested = inner.clone();
    natives
        .register("nested", 0, move |_| Ok(Value::Text(line(&nested.run("test", Arguments::default(), call()).ending))))
        .unwrap();
    let text = "fn test() { let got = nested(); insert(\"c\", #{}); [got, count(\"c\", #{})] }";
    let outer = Program::compile(vec![SourceFile::new("a.rhai", text)], &natives, &Budget::default()).unwrap();
    let ending = outer.run("test", Arguments::default(), call()).ending;
    assert_eq!(line(&ending), r#"returned ["denied denied inner",1]"#);
}

#[test]
fn faults_of_the_store_end_the_call_past_every_catch() {
    struct Broken;
    impl crate::store::Store for Broken {
        fn get(&self, _: &[u8]) -> Result<Option<crate::store::Bytes>, crate::store::StoreError> {
            Err(crate::store::StoreError::io("read", "gone"))
        }
        fn scan(
            &self,
            _: &crate::store::Range,
            _: crate::store::Direction,
            _: usize,
            _: &mut Vec<crate::store::Pair>,
        ) -> Result<(), crate::store::StoreError> {
            Err(crate::store::StoreError::io("read", "gone"))
        }
        fn apply(&self, _: &crate::store::Batch) -> Result<(), crate::store::StoreError> {
            Ok(())
        }
        fn flush(&self) -> Result<(), crate::store::StoreError> {
            Ok(())
        }
    }
    let program = program("fn test() { try { attempt(|| [1].map(|x| get(\"c\", \"a\"))) } catch { } 5 }");
    let call = Call::new(
        Transaction::over(Arc::new(Broken), NOW),
        Arc::new(Catalogue::new()),
        Arc::new(Map::new()),
        [0; 32],
        Budget::default(),
    );
    let ending = program.run("test", Arguments::default(), call).ending;
    assert!(matches!(ending, Ending::Fault(crate::transaction::Fault::Store(_))), "{}", line(&ending));
}

#[test]
fn the_example_of_the_reference_runs() {
    let text = r#"
const LOGIN    = fixed_window("login", 5, "5m");
const LOGIN_IP = token_bucket("login_ip", 100, "1m");
collection("users").unique("email");
collection("audit_log").ttl_after("at", "90d");
/// Checks a password. Wrong ones stay counted.
fn login_attempt(email, password_hash) {
    let email = lower(trimmed(email));
    let verdict = take_all([[LOGIN, email], [LOGIN_IP, ip_key(caller("ip"))]]);
    if !verdict.allowed {
        insert("audit_log", #{ action: "login_blocked", target: email, at: now() });
        deny(verdict);
    }
    let user = find_one("users", #{ email: email });
    if user == () || !secure_eq(user.password_hash, password_hash) {
        deny("invalid credentials");
    }
    LOGIN.reset(email);
    #{ ok: true, user_id: user._id }
}
fn sign_up(email, password_hash) { insert("users", #{ email: email, password_hash: password_hash }) }
"#;
    let program = program(text);
    let store = Arc::new(MemoryStore::new());
    let run = |procedure: &str, email: &str, hash: &str| {
        let arguments = Arguments::Positional(vec![email.into(), hash.into()]);
        let finished = program.run(procedure, arguments, call_on(&store));
        finished.call.transaction.commit().unwrap();
        line(&finished.ending)
    };
    assert!(run("sign_up", "a@x.com", "h").starts_with("returned"));
    assert!(run("login_attempt", " A@x.com", "h").starts_with("returned {\"ok\":true"));
    for _ in 0..5 {
        assert_eq!(run("login_attempt", "a@x.com", "no"), "denied denied invalid credentials");
    }
    assert_eq!(run("login_attempt", "a@x.com", "h"), "denied rate_limited login: try again in 5m");
}
