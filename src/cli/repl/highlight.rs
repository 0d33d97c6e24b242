//! Highlighting of what is typed: words of the language, texts, numbers, comments, and the matching bracket.

use super::super::console::Style;

const KEYWORDS: [&str; 24] = [
    "let",
    "const",
    "fn",
    "private",
    "if",
    "else",
    "for",
    "in",
    "while",
    "loop",
    "do",
    "until",
    "break",
    "continue",
    "return",
    "throw",
    "try",
    "catch",
    "switch",
    "true",
    "false",
    "this",
    "is_shared",
    "type_of",
];

/// The line with colours. `cursor` is the byte behind which the terminal's cursor stands.
pub(super) fn paint(line: &str, cursor: usize) -> String {
    let bracket = matching(line, cursor);
    let mut painted = String::with_capacity(line.len() * 2);
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let at = line.len() - rest.len();
        let (length, style) = token(rest, first);
        let text = &rest[..length];
        match style {
            _ if bracket == Some(at) => painted.push_str(&Style::Strong.paint(text)),
            Some(style) => painted.push_str(&style.paint(text)),
            None => painted.push_str(text),
        }
        rest = &rest[length..];
    }
    painted
}

/// The length in bytes of the token that a text begins with, and its style.
fn token(text: &str, first: char) -> (usize, Option<Style>) {
    let until = |stop: &dyn Fn(char) -> bool| text.find(stop).unwrap_or(text.len());
    if text.starts_with("//") {
        (until(&|c| c == '\n'), Some(Style::Dim))
    } else if matches!(first, '"' | '`' | '\'') {
        (quoted(text, first), Some(Style::Good))
    } else if first.is_ascii_digit() {
        (until(&|c| !c.is_ascii_alphanumeric() && c != '_'), Some(Style::Warning))
    } else if first.is_alphabetic() || first == '_' {
        let length = until(&|c| !c.is_alphanumeric() && c != '_');
        (length, KEYWORDS.contains(&&text[..length]).then_some(Style::Strong))
    } else {
        (first.len_utf8(), None)
    }
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' if quote != '`' => escaped = true,
            c if c == quote => return index + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// The bracket that matches the one under or before the cursor.
fn matching(line: &str, cursor: usize) -> Option<usize> {
    let bytes = line.as_bytes();
    let at = [Some(cursor), cursor.checked_sub(1)]
        .into_iter()
        .flatten()
        .find(|at| bytes.get(*at).is_some_and(|byte| b"()[]{}".contains(byte)))?;
    let (open, close, forward) = match bytes[at] {
        b'(' => (b'(', b')', true),
        b'[' => (b'[', b']', true),
        b'{' => (b'{', b'}', true),
        b')' => (b'(', b')', false),
        b']' => (b'[', b']', false),
        _ => (b'{', b'}', false),
    };
    let (inner, outer) = if forward { (open, close) } else { (close, open) };
    let mut depth = 0_usize;
    let mut step = |index: usize| {
        if bytes[index] == inner {
            depth += 1;
        } else if bytes[index] == outer {
            depth -= 1;
        }
        depth == 0
    };
    if forward { (at..bytes.len()).find(|i| step(*i)) } else { (0..=at).rev().find(|i| step(*i)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_add_nothing_and_lose_nothing() {
        for line in ["let x = \"a\\\"b\" + 1.5; // é", "`a${b}`", "\"open", "é(]", "", "x.take(\"k\")"] {
            for cursor in 0..=line.len() {
                let painted = paint(line, cursor);
                let mut plain = String::new();
                let mut in_escape = false;
                for c in painted.chars() {
                    match c {
                        '\x1b' => in_escape = true,
                        'm' if in_escape => in_escape = false,
                        c if !in_escape => plain.push(c),
                        _ => {}
                    }
                }
                assert_eq!(plain, line);
            }
        }
    }

    #[test]
    fn brackets_find_their_partner() {
        assert_eq!(matching("f(a[1])", 1), Some(6));
        assert_eq!(matching("f(a[1])", 7), Some(1));
        assert_eq!(matching("f(a[1])", 3), Some(5));
        assert_eq!(matching("f(", 2), None);
        assert_eq!(matching("ab", 1), None);
    }
}
