//! The errors: what keeps a folder of procedures from loading.

use crate::error::Severity;

use super::rule::Rule;

const fn error(
    code: &'static str,
    summary: &'static str,
    explanation: &'static str,
    bad: &'static str,
    good: &'static str,
) -> Rule {
    Rule { code, severity: Severity::Error, summary, explanation, bad, good }
}

/// The errors, in the order in which a file is read.
pub(super) const ERRORS: &[Rule] = &[
    error(
        "unreadable",
        "a file or folder that cannot be read",
        "Procedure files are UTF-8 text, and all of a folder load or none.",
        "",
        "",
    ),
    error(
        "syntax",
        "a text that is not in the language",
        "Files are plain Rhai; where the text looks like another language, the hint says what to write.",
        "fn f(x) { retrun x; }\n",
        "fn f(x) { return x; }\n",
    ),
    error(
        "too_deep",
        "an expression that is nested too deeply",
        "The depth is bounded so that no file can overflow the stack of a thread. Give parts of the expression names.",
        "fn f() { [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]] }\n",
        "fn f() { [[1]] }\n",
    ),
    error(
        "reserved_name",
        "a name that the engine makes itself",
        "Names with `__file` in them tell the constants and private functions of the files apart.",
        "fn f() { let a__file1 = 1; a__file1 }\n",
        "fn f() { let a = 1; a }\n",
    ),
    error(
        "unknown_variable",
        "a name that nothing has",
        "Variables are made with `let`, and are seen in their block. Constants are seen in the functions of their own file.",
        "fn f() { let count = 1; cuont }\n",
        "fn f() { let count = 1; count }\n",
    ),
    error(
        "unknown_function",
        "a function that neither the files nor the language nor the engine has",
        "Procedures of all files are seen everywhere; private functions in their own file.",
        "fn f() { insrt(\"users\", #{}) }\n",
        "fn f() { insert(\"users\", #{}) }\n",
    ),
    error(
        "unknown_module",
        "a name with `::` in it",
        "There are no modules: files see each other's procedures by their names.",
        "fn f() { math::abs(1) }\n",
        "fn f() { abs(1) }\n",
    ),
    error(
        "import",
        "an `import` or `export`",
        "Files see each other's procedures without it.",
        "import \"other\" as other;\nfn f() { 1 }\n",
        "fn f() { 1 }\n",
    ),
    error(
        "wrong_arguments",
        "a call with more or fewer arguments than the function has",
        "The message says how the function is called.",
        "fn add(a, b) { a + b }\nfn f() { add(1) }\n",
        "fn add(a, b) { a + b }\nfn f() { add(1, 2) }\n",
    ),
    error(
        "constant",
        "a constant that is changed",
        "Constants are shared by all calls. Copy one to change the copy: `let list = LIST;`.",
        "const LIST = [1];\nfn f() { LIST.push(2); LIST }\n",
        "const LIST = [1];\nfn f() { let list = LIST; list.push(2); list }\n",
    ),
    error(
        "file_level",
        "a statement at file level that is no declaration",
        "A file runs once, when it is loaded, without a store: constants, limits, collections and schedules can stand there.",
        "let count = 0;\nfn f() { 1 }\n",
        "const COUNT = 0;\nfn f() { COUNT }\n",
    ),
    error(
        "declaration",
        "a declaration that fails when it runs",
        "File level runs at load. Host functions that need a call, such as `now()`, cannot run there.",
        "const STARTED = now();\nfn f() { STARTED }\n",
        "fn f() { now() }\n",
    ),
    error(
        "bad_limit",
        "a limit that makes no sense, or is declared twice in two ways",
        "Rates, periods and costs are whole and positive; what could never admit anything is refused at load.",
        "const API = fixed_window(\"api\", 0, \"1m\");\nfn f(user) { API.enforce(user); }\n",
        "const API = fixed_window(\"api\", 1, \"1m\");\nfn f(user) { API.enforce(user); }\n",
    ),
    error(
        "bad_collection",
        "a collection that two places declare in two ways",
        "Declarations of one collection add up. They must not contradict each other, as two times of expiry do.",
        "collection(\"a\").ttl(\"x\");\ncollection(\"a\").ttl(\"y\");\nfn f() { count(\"a\", #{}) }\n",
        "collection(\"a\").ttl(\"x\");\nfn f() { count(\"a\", #{}) }\n",
    ),
    error(
        "bad_schedule",
        "a schedule that makes no sense, is declared twice, or names no handler",
        "A schedule is named after its handler, unless it has a name of its own.",
        "every(\"1m\", \"tidy\");\nevery(\"2m\", \"tidy\");\nfn tidy() { 1 }\n",
        "every(\"1m\", \"tidy\");\nevery(\"2m\", \"tidy\", #{ name: \"slow\" });\nfn tidy() { 1 }\n",
    ),
    error(
        "method",
        "a function that is a method of a type",
        "Procedures are plain functions: take the value as a parameter.",
        "fn int.double() { this * 2 }\n",
        "fn double(n) { n * 2 }\n",
    ),
    error(
        "hides_host_function",
        "a function that would hide one of the language or the engine",
        "Of two functions with one name and as many parameters, nobody could tell which is called.",
        "fn sha256(text) { text }\n",
        "fn digest(text) { sha256(text) }\n",
    ),
    error(
        "duplicate_procedure",
        "a procedure that is defined twice",
        "Procedures of all files share one name space, whatever their parameters. Make one `private`, or rename it.",
        "fn f(a) { a }\nfn f(a, b) { a + b }\n",
        "fn f(a) { a }\nfn g(a, b) { a + b }\n",
    ),
    error(
        "bad_param",
        "a `@param` line that names no parameter or no type",
        "The types are int, number, string, bool, array, map, filter and any; `?` behind one makes the parameter optional.",
        "/// @param n integer\nfn f(n) { n }\n",
        "/// @param n int\nfn f(n) { n }\n",
    ),
];
