//! Comments: where a file says something to people and tools, which the interpreter does not keep.

/// A `//` comment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Comment<'a> {
    /// Line of its first slash, from 1.
    pub(super) line: usize,
    /// Column of its first slash, from 1, in characters.
    pub(super) column: usize,
    /// What stands behind the two slashes.
    pub(super) text: &'a str,
    /// Whether nothing stands before it on its line.
    pub(super) alone: bool,
}

/// What a text is in the middle of.
enum Within {
    /// Code; how many of its braces are open.
    Code(usize),
    /// A text in backticks.
    Backticks,
}

/// The `//` comments of a text. Slashes in texts are none, those in `${…}` of a text are.
pub(super) fn comments(text: &str) -> Vec<Comment<'_>> {
    let mut out = Vec::new();
    let mut within = vec![Within::Code(0)];
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        at += match within.last_mut() {
            Some(Within::Backticks) => in_backticks(rest, c, &mut within),
            _ if rest.starts_with("//") => {
                let length = rest.find('\n').unwrap_or(rest.len());
                out.push(comment(text, at, &rest[2..length]));
                length
            }
            _ if rest.starts_with("/*") => block_comment(rest),
            _ => in_code(rest, c, &mut within),
        };
    }
    out
}

fn comment<'a>(text: &'a str, at: usize, said: &'a str) -> Comment<'a> {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let before = &text[start..at];
    Comment {
        line: 1 + text[..at].matches('\n').count(),
        column: 1 + before.chars().count(),
        text: said.trim_end_matches('\r'),
        alone: before.trim().is_empty(),
    }
}

/// The length of what comes next in a text in backticks.
fn in_backticks(rest: &str, c: char, within: &mut Vec<Within>) -> usize {
    if rest.starts_with("${") {
        within.push(Within::Code(0));
        return 2;
    }
    if c == '`' {
        within.pop();
    }
    c.len_utf8()
}

/// The length of what comes next in code.
fn in_code(rest: &str, c: char, within: &mut Vec<Within>) -> usize {
    let depth = within.len();
    match (c, within.last_mut()) {
        ('"', _) => return quoted(rest, '"'),
        ('\'', _) => return quoted(rest, '\''),
        ('#', _) if is_raw(rest) => return raw(rest),
        ('`', _) => within.push(Within::Backticks),
        ('{', Some(Within::Code(open))) => *open += 1,
        // The end of `${…}`: the text goes on.
        ('}', Some(Within::Code(0))) if depth > 1 => _ = within.pop(),
        ('}', Some(Within::Code(open))) => *open = open.saturating_sub(1),
        _ => {}
    }
    c.len_utf8()
}

/// The length of a text in quotes; one that does not end is an error of the file, and ends with it.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

fn is_raw(rest: &str) -> bool {
    rest.trim_start_matches('#').starts_with('"')
}

/// The length of a text such as `##"…"##`.
fn raw(rest: &str) -> usize {
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    let end = format!("\"{}", &rest[..hashes]);
    let start = hashes + 1;
    rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len())
}

/// The length of a `/* … */` comment, which may hold others.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(c) = rest[at..].chars().next() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += c.len_utf8();
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_found_and_slashes_in_texts_are_not() {
        let text = "// one\nlet a = \"// no \\\" // no\"; // two\nlet b = `// no ${ f(\"}\", #{ x: 1 }) // three\n} // no`;\n\
                    /* // no /* // no */ // no */ 'c' // vier ü\nlet c = #\"// no\" // no\"#; // six";
        let found: Vec<(usize, usize, &str, bool)> =
            comments(text).iter().map(|c| (c.line, c.column, c.text, c.alone)).collect();
        assert_eq!(
            found,
            [
                (1, 1, " one", true),
                (2, 27, " two", false),
                (3, 37, " three", false),
                (5, 35, " vier ü", false),
                (6, 27, " six", false),
            ]
        );
    }

    #[test]
    fn what_does_not_end_ends_with_the_text() {
        for text in ["\"// a", "`// a ${ b", "/* // a", "#\"// a", "'", "`${`${", "}}", "/", "\\", "#"] {
            assert_eq!(comments(text), [], "{text}");
        }
    }
}
