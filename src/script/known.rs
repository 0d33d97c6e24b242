//! Known functions: which names the language and the host define, with how many parameters.

use std::collections::{BTreeMap, BTreeSet};

use rhai::Engine;

use crate::spelling;

/// Functions by name, each with the numbers of parameters it may have.
#[derive(Clone, Debug, Default)]
pub(super) struct Known(BTreeMap<String, BTreeSet<usize>>);

/// Names that the interpreter itself understands, whatever is registered.
const BUILT_IN: [&str; 9] =
    ["Fn", "call", "curry", "is_shared", "is_def_var", "is_def_fn", "type_of", "print", "debug"];

impl Known {
    /// What an interpreter has registered.
    pub(super) fn of(engine: &Engine) -> Known {
        let mut known = Known::default();
        for signature in engine.gen_fn_signatures(true) {
            let Some((name, rest)) = signature.split_once('(') else { continue };
            if rhai::is_valid_identifier(name) {
                known.add(name, parameters(rest));
            }
        }
        known
    }

    pub(super) fn add(&mut self, name: &str, arity: usize) {
        self.0.entry(name.to_owned()).or_default().insert(arity);
    }

    /// Whether `name` is registered with this many parameters.
    pub(super) fn has(&self, name: &str, arity: usize) -> bool {
        self.0.get(name).is_some_and(|arities| arities.contains(&arity))
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        BUILT_IN.contains(&name) || self.0.contains_key(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// What was meant by a name that nothing has.
    pub(super) fn hint(&self, name: &str) -> Option<String> {
        if self.has_name(name) {
            return None;
        }
        spelling::nearest(name, self.names()).map(|near| format!("did you mean `{near}`?"))
    }

    /// Why a call of `name` with `arity` arguments cannot be right: message and hint; none when it can.
    pub(super) fn fault(&self, name: &str, arity: usize, method: bool) -> Option<(String, Option<String>)> {
        if BUILT_IN.contains(&name) || self.has(name, arity) {
            return None;
        }
        let shown = if method { arity.saturating_sub(1) } else { arity };
        match self.0.get(name) {
            Some(arities) => {
                let counts: Vec<String> = arities
                    .iter()
                    .filter_map(|n| if method { n.checked_sub(1) } else { Some(*n) })
                    .map(|n| n.to_string())
                    .collect();
                let list = counts.join(" or ");
                Some((
                    format!("`{name}` takes {list} argument{}, not {shown}", if list == "1" { "" } else { "s" }),
                    None,
                ))
            }
            None => {
                let hint = hint_of_other_languages(name)
                    .map(str::to_owned)
                    .or_else(|| spelling::nearest(name, self.names()).map(|near| format!("did you mean `{near}`?")));
                let what = if method { "method" } else { "function" };
                Some((format!("there is no {what} `{name}`"), hint))
            }
        }
    }
}

fn hint_of_other_languages(name: &str) -> Option<&'static str> {
    Some(match name {
        "sleep" => "a call has one instant and cannot wait: return the time to wait to the caller",
        "timestamp" | "time" => "use `now()`, the call's one instant in ms",
        "eval" => "text is never run as code",
        "len" | "length" | "size" => "use `.len()`",
        "exit" => "use `return`, or `deny(why)` and `abort(why)` to refuse",
        "rand" => "use `random()` or `random_int(low, high)`",
        _ => return None,
    })
}

/// Counts the parameters in `a: T, b: U<V, W>) -> R`.
fn parameters(rest: &str) -> usize {
    let (mut depth, mut commas, mut any) = (0_i32, 0, false);
    for c in rest.chars() {
        match c {
            ')' if depth == 0 => break,
            '(' | '<' | '[' => depth += 1,
            ')' | '>' | ']' => depth -= 1,
            ',' if depth == 0 => commas += 1,
            c if !c.is_whitespace() => any = true,
            _ => {}
        }
    }
    if any { commas + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_counted_by_their_commas() {
        for (rest, count) in [(") -> i64", 0), ("a: i64)", 1), ("_: Map<K, V>, b: (), c)", 3)] {
            assert_eq!(parameters(rest), count, "{rest}");
        }
    }
}
