//! Known functions: which names the language and the host define, with how many parameters.

use std::collections::{BTreeMap, BTreeSet};

use rhai::Engine;

use super::{convert, suggest};

/// Functions by name, each with the numbers of parameters it may have.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    arities: BTreeMap<String, BTreeSet<usize>>,
    /// The kinds of values that each form of a function takes, such as `(string, map)`.
    forms: BTreeMap<String, BTreeSet<String>>,
}

/// Forms of a function that a hint shows; the language's own arithmetic has dozens.
const MOST_FORMS: usize = 4;

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
                let kinds = kinds(rest);
                known.add(name, kinds.len());
                known.forms.entry(name.to_owned()).or_default().insert(format!("({})", kinds.join(", ")));
            }
        }
        known
    }

    pub(super) fn add(&mut self, name: &str, arity: usize) {
        self.arities.entry(name.to_owned()).or_default().insert(arity);
    }

    /// Whether `name` is registered with this many parameters.
    pub(super) fn has(&self, name: &str, arity: usize) -> bool {
        self.arities.get(name).is_some_and(|arities| arities.contains(&arity))
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        BUILT_IN.contains(&name) || self.arities.contains_key(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.arities.keys().map(String::as_str)
    }

    /// What to do about a call of `name` that no form of it takes.
    pub(super) fn hint(&self, name: &str) -> Option<String> {
        match self.forms.get(name) {
            Some(forms) if forms.len() <= MOST_FORMS => {
                let forms: Vec<&str> = forms.iter().map(String::as_str).collect();
                Some(format!("it takes {}", forms.join(" or ")))
            }
            Some(_) => None,
            None => suggest::nearest(name, self.names()).map(|near| format!("did you mean `{near}`?")),
        }
    }

    /// Why a call of `name` with `arity` arguments cannot be right: message and hint; none when it can.
    pub(super) fn fault(&self, name: &str, arity: usize, method: bool) -> Option<(String, Option<String>)> {
        if BUILT_IN.contains(&name) || self.has(name, arity) {
            return None;
        }
        let shown = if method { arity.saturating_sub(1) } else { arity };
        match self.arities.get(name) {
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
                    .or_else(|| suggest::nearest(name, self.names()).map(|near| format!("did you mean `{near}`?")));
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

/// The kinds of the parameters in `a: T, b: U<V, W>) -> R`.
fn kinds(rest: &str) -> Vec<&'static str> {
    let (mut depth, mut start, mut all) = (0_i32, 0, Vec::new());
    for (at, c) in rest.char_indices() {
        match c {
            ')' | ',' if depth == 0 => {
                let parameter = rest[start..at].trim();
                if !parameter.is_empty() {
                    all.push(kind(parameter));
                }
                start = at + 1;
                if c == ')' {
                    break;
                }
            }
            '(' | '<' | '[' => depth += 1,
            ')' | '>' | ']' => depth -= 1,
            _ => {}
        }
    }
    all
}

/// The kind of `a: &mut T` as scripts know it.
fn kind(parameter: &str) -> &'static str {
    let name = parameter.split_once(':').map_or(parameter, |(_, name)| name).trim();
    match convert::plain_type(name.trim_start_matches("&mut ").trim_start_matches('&')) {
        _ if name == "?" || name.contains("Dynamic") => "any",
        "other" if name.ends_with("str") => "string",
        "other" => "any",
        kind => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_off_signatures() {
        let none: &[&str] = &[];
        for (rest, found) in [
            (") -> i64", none),
            ("a: i64)", &["int"]),
            ("_: Map<K, V>, b: (), c)", &["any", "()", "any"]),
            ("_: &mut limit, _: &str, _: Dynamic) -> decision", &["limit", "string", "any"]),
        ] {
            assert_eq!(kinds(rest), found, "{rest}");
        }
    }
}
