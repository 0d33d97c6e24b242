//! Candidates for completion: what there is to be named at the prompt.

use tollgate::{Engine, Session};

use super::dot;

/// Something that can be completed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    /// What is typed.
    pub(super) text: String,
    /// What is shown beside it.
    pub(super) display: String,
    /// What shows while its arguments are typed; empty when it takes none.
    pub(super) signature: String,
}

/// Methods of a limit.
const METHODS: [&str; 16] = [
    "take",
    "peek",
    "reserve",
    "refund",
    "charge",
    "reset",
    "block",
    "unblock",
    "enforce",
    "acquire",
    "renew",
    "release",
    "set_override",
    "allow",
    "ban",
    "revoke",
];

/// Everything there is to be named now.
pub(super) fn all(engine: &Engine, session: &Session) -> Vec<Candidate> {
    let plain = |text: String| Candidate { display: text.clone(), text, signature: String::new() };
    let mut candidates: Vec<Candidate> = engine
        .procedures()
        .into_iter()
        .map(|procedure| Candidate {
            text: format!("{}(", procedure.name),
            display: procedure.signature.clone(),
            signature: procedure.signature,
        })
        .collect();
    let procedures = candidates.len();
    let names = engine.names().into_iter().filter(|name| !name.contains(|c: char| !c.is_alphanumeric() && c != '_'));
    candidates.extend(names.map(plain));
    candidates.extend(session.variables().into_iter().map(plain));
    // A store that cannot be read right now is no reason to complete nothing.
    candidates.extend(engine.collections().unwrap_or_default().into_iter().map(plain));
    candidates.extend(engine.limits().iter().map(|limit| plain(limit.name().to_owned())));
    candidates.extend(METHODS.map(|method| plain(format!("{method}("))));
    candidates.extend(dot::ALL.iter().map(|(usage, _)| Candidate {
        text: dot::name_of(usage).to_owned(),
        display: (*usage).to_owned(),
        signature: String::new(),
    }));
    // A procedure is listed with its signature, not once more by its bare name.
    let called: Vec<String> =
        candidates[..procedures].iter().map(|c| c.text.trim_end_matches('(').to_owned()).collect();
    candidates.retain(|candidate| !called.contains(&candidate.text));
    candidates.sort();
    candidates.dedup_by(|a, b| a.text == b.text);
    candidates
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
