//! Candidates for completion: what there is to be named at the prompt.

use std::collections::BTreeSet;

use tollgate::{Engine, Map, Session, Value};

use super::dot;

/// Where a candidate may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Where a name may.
    Name,
    /// Behind the dot of a value.
    Member,
    /// Both.
    Either,
    /// At the beginning of the line.
    Command,
}

/// Collections whose fields are looked up, and documents of each that are looked at.
const MOST_COLLECTIONS: usize = 50;
const MOST_DOCUMENTS: i64 = 5;

/// Something that can be completed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    /// What is typed.
    pub(super) text: String,
    /// What is shown beside it.
    pub(super) display: String,
    /// What shows while its arguments are typed; empty when it takes none.
    pub(super) signature: String,
    pub(super) place: Place,
}

/// Methods of a limit, as their arguments are written.
const METHODS: [&str; 17] = [
    "take(key, cost)",
    "peek(key, cost)",
    "reserve(key, cost)",
    "refund(key, tokens)",
    "charge(key, tokens)",
    "reset(key)",
    "block(key, span)",
    "unblock(key)",
    "enforce(key, cost)",
    "acquire(key, cost)",
    "renew(key, lease)",
    "release(key, lease)",
    "set_override(key, settings, span)",
    "allow(key, span)",
    "ban(key, span)",
    "revoke(key)",
    "describe()",
];

/// Everything there is to be named now.
pub(super) fn all(engine: &Engine, session: &Session) -> Vec<Candidate> {
    let at = |place: Place, text: String| Candidate { display: text.clone(), text, signature: String::new(), place };
    let plain = |text: String| at(Place::Name, text);
    let mut candidates: Vec<Candidate> = engine
        .procedures()
        .into_iter()
        .map(|procedure| Candidate {
            text: format!("{}(", procedure.name),
            display: procedure.signature.clone(),
            signature: procedure.signature,
            place: Place::Name,
        })
        .collect();
    let procedures = candidates.len();
    let is_method = |name: &str| METHODS.iter().any(|method| method.split('(').next() == Some(name));
    let is_word = |name: &str| name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let names = engine.names().into_iter().filter(|name| is_word(name) && !is_method(name));
    candidates.extend(names.map(plain));
    candidates.extend(session.variables().into_iter().map(plain));
    // A store that cannot be read right now is no reason to complete nothing.
    let collections = engine.collections().unwrap_or_default();
    candidates.extend(fields(engine, &collections).into_iter().map(|field| at(Place::Either, field)));
    candidates.extend(collections.into_iter().map(plain));
    candidates.extend(engine.limits().iter().map(|limit| plain(limit.name().to_owned())));
    candidates.extend(METHODS.map(|method| Candidate {
        text: method.split_inclusive('(').next().unwrap_or(method).to_owned(),
        display: method.to_owned(),
        signature: method.to_owned(),
        place: Place::Member,
    }));
    candidates.extend(dot::ALL.iter().map(|(usage, _)| Candidate {
        text: dot::name_of(usage).to_owned(),
        display: (*usage).to_owned(),
        signature: String::new(),
        place: Place::Command,
    }));
    // A procedure is listed with its signature, not once more by its bare name.
    let called: Vec<String> =
        candidates[..procedures].iter().map(|c| c.text.trim_end_matches('(').to_owned()).collect();
    candidates.retain(|candidate| !called.contains(&candidate.text));
    candidates.sort();
    candidates.dedup_by(|a, b| a.text == b.text && a.place == b.place);
    candidates
}

/// Names of fields that documents have.
fn fields(engine: &Engine, collections: &[String]) -> BTreeSet<String> {
    let few = Map::from([("limit".to_owned(), Value::Int(MOST_DOCUMENTS))]);
    let looked = collections
        .iter()
        .take(MOST_COLLECTIONS)
        .map(|name| engine.read(|tx| tx.find_with(name, &Map::new(), &few)).unwrap_or_default());
    let is_name = |name: &String| name.chars().all(|c| c.is_alphanumeric() || c == '_');
    looked.flatten().flat_map(Map::into_keys).filter(is_name).collect()
}

impl Candidate {
    /// Whether it fits a word that is typed behind `before`.
    pub(super) fn fits(&self, before: &str, word: &str) -> bool {
        if !self.text.starts_with(word) {
            return false;
        }
        match self.place {
            Place::Command => word.starts_with('.'),
            Place::Member => before.ends_with('.'),
            Place::Name => !before.ends_with('.'),
            Place::Either => true,
        }
    }
}

/// Where the word that ends at `end` begins.
pub(super) fn word_start(line: &str, end: usize) -> usize {
    let before = &line[..end];
    let start = before
        .char_indices()
        .rev()
        .take_while(|(_, c)| c.is_alphanumeric() || *c == '_')
        .last()
        .map_or(end, |(index, _)| index);
    // The dot of a dot-command belongs to it; the dot of a method does not.
    if before[..start].trim_start() == "." { start - 1 } else { start }
}

/// The name of the call whose arguments are being typed at the end of `line`.
pub(super) fn open_call(line: &str) -> Option<&str> {
    let mut depth = 0_usize;
    for (index, c) in line.char_indices().rev() {
        match c {
            ')' | ']' | '}' => depth += 1,
            '(' | '[' | '{' if depth > 0 => depth -= 1,
            '(' => {
                let name = &line[word_start(line, index)..index];
                return (!name.is_empty()).then_some(name);
            }
            '[' | '{' => {}
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_calls_are_found() {
        for (line, word) in
            [("log", "log"), (".cl", ".cl"), ("LOGIN.ta", "ta"), ("f(x, y", "y"), ("", ""), ("é.a", "a")]
        {
            assert_eq!(&line[word_start(line, line.len())..], word, "{line}");
        }
        for (line, call) in [
            ("pay(", Some("pay")),
            ("pay(1, f(2)", Some("pay")),
            ("pay(1, f(2", Some("f")),
            ("pay()", None),
            ("(", None),
        ] {
            assert_eq!(open_call(line), call, "{line}");
        }
    }
}
