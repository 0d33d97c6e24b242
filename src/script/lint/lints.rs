//! The lints: what loads and yet a person should look at.

use crate::error::Severity;

use super::rule::Rule;

const fn lint(
    code: &'static str,
    summary: &'static str,
    explanation: &'static str,
    bad: &'static str,
    good: &'static str,
) -> Rule {
    Rule { code, severity: Severity::Warning, summary, explanation, bad, good }
}

/// The lints, in the order in which they matter.
pub(super) const LINTS: &[Rule] = &[
    lint(
        "abort_after_take",
        "an `abort` that can follow a take and undoes it",
        "`abort` rolls back the whole call, the take too: an attempt that ends in it is not counted. A login that aborts on a \
         wrong password can be tried for ever. `deny` refuses as well and keeps what was written. An `abort` that answers the \
         refusal of a limit is no fault, since nothing was taken there. Where the attempt shall cost nothing, check before \
         the take, or allow it by a comment.",
        "const LOGIN = fixed_window(\"login\", 5, \"5m\");

fn login(email, password) {
    LOGIN.enforce(email);
    if password != \"secret\" { abort(\"wrong password\"); }
}
",
        "const LOGIN = fixed_window(\"login\", 5, \"5m\");

fn login(email, password) {
    LOGIN.enforce(email);
    if password != \"secret\" { deny(\"wrong password\"); }
}
",
    ),
    lint(
        "throw_after_take",
        "a `throw` that undoes the count of a failure",
        "A `throw` that nobody catches fails the call, and nothing of a failed call is kept. It is told of where the take \
         counts failures: the `throw` follows it in the same block, so that every such take is undone, or the function resets \
         the limit when all is well. `deny` keeps the count.",
        "const WRONG = fixed_window(\"wrong_codes\", 5, \"10m\");

fn confirm(user, code) {
    WRONG.enforce(user);
    if code != 1234 { throw \"wrong code\"; }
    WRONG.reset(user);
}
",
        "const WRONG = fixed_window(\"wrong_codes\", 5, \"10m\");

fn confirm(user, code) {
    WRONG.enforce(user);
    if code != 1234 { deny(\"wrong code\"); }
    WRONG.reset(user);
}
",
    ),
    lint(
        "dropped_decision",
        "a take whose decision nobody looks at",
        "`take`, `take_all`, `reserve` and `acquire` answer whether they are allowed and refuse nothing themselves. Where the \
         answer is dropped, the work goes on without a permit. `enforce` refuses the call. Nothing is said where the limit is \
         a shadow, where the function peeks at it, and where the call is refused in any case.",
        "const API = fixed_window(\"api\", 100, \"1m\");

fn fetch(user) {
    API.take(user);
    #{ ok: true }
}
",
        "const API = fixed_window(\"api\", 100, \"1m\");

fn fetch(user) {
    API.enforce(user);
    #{ ok: true }
}
",
    ),
    lint(
        "scan_only",
        "a `find`, `update` or the like that no index serves",
        "Without an index over a field that the filter names, every document of the collection is read: it works in a test and \
         spends the budget of documents a call may read once the collection has grown. Declare an index, which is what the hint \
         says, or allow it for a collection that stays small.",
        "collection(\"users\");

fn by_email(email) {
    insert(\"users\", #{ email: email });
    find_one(\"users\", #{ email: email })
}
",
        "collection(\"users\").index(\"email\");

fn by_email(email) {
    insert(\"users\", #{ email: email });
    find_one(\"users\", #{ email: email })
}
",
    ),
    lint(
        "whole_filter",
        "an argument that is used as a whole filter",
        "Whoever calls then chooses which documents are found, changed or deleted; `#{}` is all of them. Filter by fields, whose \
         values are the arguments. Where the caller shall choose, say so with `/// @param NAME filter`: only then do operators \
         such as `$gt` come through.",
        "collection(\"notes\").index(\"user_id\");

fn drop_notes(filter) {
    delete(\"notes\", filter)
}
",
        "collection(\"notes\").index(\"user_id\");

fn drop_notes(user_id) {
    delete(\"notes\", #{ user_id: user_id })
}
",
    ),
    lint(
        "unknown_collection",
        "a collection that is read, and that no file declares or fills",
        "A collection need not be declared, so a mistyped name finds nothing and is no error. Where the host fills the collection, \
         declare it: that says that it is meant.",
        "collection(\"users\").unique(\"email\");

fn add(email) { insert(\"users\", #{ email: email }) }
fn known(email) { exists(\"user\", #{ _id: email }) }
",
        "collection(\"users\").unique(\"email\");

fn add(email) { insert(\"users\", #{ email: email }) }
fn known(email) { exists(\"users\", #{ email: email }) }
",
    ),
    lint(
        "unused_limit",
        "a limit that no function uses",
        "A limit that is declared and never asked guards nothing. Often a procedure was written for it and takes from another \
         one. Allow it where the host alone takes from it.",
        "const API = fixed_window(\"api\", 100, \"1m\");
const MAIL = fixed_window(\"mail\", 10, \"1h\");

fn mail(user) { API.enforce(user); }
fn fetch(user) { API.enforce(user); }
",
        "const API = fixed_window(\"api\", 100, \"1m\");
const MAIL = fixed_window(\"mail\", 10, \"1h\");

fn mail(user) { MAIL.enforce(user); }
fn fetch(user) { API.enforce(user); }
",
    ),
    lint(
        "unused_collection",
        "a collection that no procedure uses",
        "A declaration keeps indexes and expiry for documents that no procedure reads or writes. Nothing is said where a procedure \
         makes the name of a collection while it runs. Allow it where the host alone uses it.",
        "collection(\"users\").unique(\"email\");
collection(\"sessions\").ttl(\"expires_at\");

fn add(email) { insert(\"users\", #{ email: email }) }
",
        "collection(\"users\").unique(\"email\");

fn add(email) { insert(\"users\", #{ email: email }) }
",
    ),
    lint(
        "unknown_method",
        "a method that neither the language nor the engine has",
        "The call fails when it runs, unless the value is a map that holds a function under this name.",
        "fn shout(text) { text.uppercase() }
",
        "fn shout(text) { text.to_upper() }
",
    ),
    lint(
        "declaration_in_function",
        "a declaration inside of a function",
        "Collections, indexes and schedules are declared when a file is loaded; in a call it is an error.",
        "fn tidy() { every(\"1h\", \"tidy\") }
",
        "every(\"1h\", \"tidy\");

fn tidy() { () }
",
    ),
    lint(
        "unknown_allow",
        "a comment that allows what is no lint",
        "`// allow(CODE): why` stands behind the line that it is about, or alone on the line before it; `//! allow(CODE): why` holds \
         for the whole file. The code must be that of a lint: errors cannot be allowed.",
        "const API = fixed_window(\"api\", 100, \"1m\");

fn fetch(user) {
    API.enforce(user); // allow(droped_decision): it is only a trial
}
",
        "const API = fixed_window(\"api\", 100, \"1m\");

fn fetch(user) {
    API.take(user); // allow(dropped_decision): it is only a trial
    #{ ok: true }
}
",
    ),
    lint(
        "unused_allow",
        "a comment that allows what is not raised",
        "It hid a fault that is gone, or stands on another line than the fault. One that stays would hide the next fault there.",
        "const API = fixed_window(\"api\", 100, \"1m\");

fn fetch(user) {
    // allow(dropped_decision): it is only a trial
    API.enforce(user);
}
",
        "const API = fixed_window(\"api\", 100, \"1m\");

fn fetch(user) {
    API.enforce(user);
}
",
    ),
];
