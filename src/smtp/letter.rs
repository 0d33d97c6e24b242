//! Letter: the mail that a payload describes.

use lettre::Message;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart, SinglePart};

use crate::spelling;
use crate::value::{Map, Value};

use super::domain_of;

/// What a payload may say.
const FIELDS: [&str; 10] =
    ["to", "cc", "bcc", "from", "reply_to", "subject", "text", "html", "list_unsubscribe", "list_unsubscribe_post"];

/// The most addresses of one mail.
const MAX_ADDRESSES: usize = 100;

/// Why a payload makes no mail.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the payload makes no mail: {0}")]
pub struct InvalidMail(pub(super) String);

fn invalid<T>(why: impl Into<String>) -> Result<T, InvalidMail> {
    Err(InvalidMail(why.into()))
}

/// Writes the mail that `payload` describes. The same job always makes the same `Message-ID`.
pub(super) fn write(id: &str, payload: &Value, from: &Mailbox) -> Result<Message, InvalidMail> {
    let Value::Map(payload) = payload else {
        return invalid(format!("it is a map with `to`, `subject` and `text` or `html`, not {}", payload.type_name()));
    };
    if let Some(unknown) = payload.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        let hint = spelling::advice(unknown, &FIELDS);
        return invalid(format!("`{unknown}` is no field of a mail: {hint}"));
    }
    let from = match addresses(payload, "from")?.as_slice() {
        [] => from.clone(),
        [one] => one.clone(),
        _ => return invalid("`from` is one address"),
    };
    let to = addresses(payload, "to")?;
    if to.is_empty() {
        return invalid("`to` is missing: who gets it?");
    }
    let mut message = Message::builder()
        .message_id(Some(format!("<{id}@{}>", domain_of(&from.email))))
        .from(from)
        .subject(line(payload, "subject")?.ok_or_else(|| InvalidMail("`subject` is missing".to_owned()))?);
    for one in to {
        message = message.to(one);
    }
    for one in addresses(payload, "cc")? {
        message = message.cc(one);
    }
    for one in addresses(payload, "bcc")? {
        message = message.bcc(one);
    }
    for one in addresses(payload, "reply_to")? {
        message = message.reply_to(one);
    }
    for (name, value) in unsubscribe(payload)? {
        message = message.raw_header(HeaderValue::new(HeaderName::new_from_ascii_str(name), value));
    }
    let (text, html) = (text(payload, "text")?, text(payload, "html")?);
    let built = match (text, html) {
        (Some(text), Some(html)) => message.multipart(MultiPart::alternative_plain_html(text, html)),
        (Some(text), None) => message.singlepart(SinglePart::plain(text)),
        (None, Some(html)) => message.singlepart(SinglePart::html(html)),
        (None, None) => return invalid("`text` and `html` are both missing: write one of them"),
    };
    built.map_err(|cause| InvalidMail(cause.to_string()))
}

fn text(payload: &Map, field: &str) -> Result<Option<String>, InvalidMail> {
    match payload.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Text(text)) => Ok(Some(text.clone())),
        Some(other) => invalid(format!("`{field}` is a text, not {}", other.type_name())),
    }
}

/// A text that goes into a header: no line may end in it, or a caller could write headers of his own.
fn line(payload: &Map, field: &str) -> Result<Option<String>, InvalidMail> {
    let line = text(payload, field)?;
    match &line {
        Some(text) if text.chars().any(char::is_control) => {
            invalid(format!("`{field}` is one line without control characters, not {text:?}"))
        }
        _ => Ok(line),
    }
}

/// One text or an array of texts.
fn texts(payload: &Map, field: &str) -> Result<Vec<String>, InvalidMail> {
    match payload.get(field) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Text(text)) => Ok(vec![text.clone()]),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| match item {
                Value::Text(text) => Ok(text.clone()),
                other => invalid(format!("`{field}` is a text or an array of texts, not of {}", other.type_name())),
            })
            .collect(),
        Some(other) => invalid(format!("`{field}` is a text or an array of texts, not {}", other.type_name())),
    }
}

fn addresses(payload: &Map, field: &str) -> Result<Vec<Mailbox>, InvalidMail> {
    let texts = texts(payload, field)?;
    if texts.len() > MAX_ADDRESSES {
        return invalid(format!(
            "`{field}` has {} addresses, and {MAX_ADDRESSES} at most go into one mail",
            texts.len()
        ));
    }
    texts
        .iter()
        .map(|text| match text.parse::<Mailbox>() {
            Ok(mailbox) if !text.chars().any(char::is_control) => Ok(mailbox),
            Ok(_) => invalid(format!("`{field}` holds a control character: {text:?}")),
            Err(cause) => invalid(format!("`{field}` is no address: {text:?} ({cause})")),
        })
        .collect()
}

/// `List-Unsubscribe` (RFC 2369) and `List-Unsubscribe-Post` (RFC 8058).
fn unsubscribe(payload: &Map) -> Result<Vec<(&'static str, String)>, InvalidMail> {
    let links = texts(payload, "list_unsubscribe")?;
    for link in &links {
        let known = ["https://", "http://", "mailto:"].iter().any(|scheme| link.starts_with(scheme));
        let clean = link.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '<' | '>' | ','));
        if !known || !clean {
            return invalid(format!("`list_unsubscribe` is an https or mailto link without brackets, not {link:?}"));
        }
    }
    let one_click = match payload.get("list_unsubscribe_post") {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Bool(true)) => true,
        Some(other) => return invalid(format!("`list_unsubscribe_post` is true or false, not {}", other.type_name())),
    };
    if one_click && !links.iter().any(|link| link.starts_with("https://")) {
        return invalid("`list_unsubscribe_post` needs an https link in `list_unsubscribe` (RFC 8058)");
    }
    let mut headers = Vec::new();
    if !links.is_empty() {
        let links: Vec<String> = links.iter().map(|link| format!("<{link}>")).collect();
        headers.push(("List-Unsubscribe", links.join(", ")));
    }
    if one_click {
        headers.push(("List-Unsubscribe-Post", "List-Unsubscribe=One-Click".to_owned()));
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(payload: &str) -> Result<String, String> {
        let payload = Value::from_json(payload).unwrap();
        let from = "Example <no-reply@example.com>".parse().unwrap();
        let letter = write("018f-1", &payload, &from).map_err(|invalid| invalid.to_string())?;
        Ok(String::from_utf8(letter.formatted()).unwrap())
    }

    #[test]
    fn a_mail_has_both_parts_and_the_headers_asked_for() {
        let mail = written(
            r#"{"to": "Ada <ada@example.org>", "cc": ["b@x.org", "c@x.org"], "subject": "Grüße", "text": "hello",
                "html": "<p>hello</p>", "list_unsubscribe": ["https://example.com/u?id=1", "mailto:u@example.com"],
                "list_unsubscribe_post": true}"#,
        )
        .unwrap();
        for part in [
            "Message-ID: <018f-1@example.com>\r\n",
            "From: Example <no-reply@example.com>\r\n",
            "To: Ada <ada@example.org>\r\n",
            "Cc: b@x.org, c@x.org\r\n",
            "Subject: =?utf-8?b?",
            "List-Unsubscribe: <https://example.com/u?id=1>, <mailto:u@example.com>\r\n",
            "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n",
            "multipart/alternative",
            "text/plain",
            "text/html",
        ] {
            assert!(mail.contains(part), "{part} in {mail}");
        }
    }

    #[test]
    fn what_makes_no_mail_says_why() {
        let whole = |field: &str| format!(r#"{{"to": "a@x.org", "subject": "s", "text": "t", {field}}}"#);
        let cases = [
            ("3".to_owned(), "it is a map with `to`, `subject` and `text` or `html`, not int"),
            (r#"{"subject": "s", "text": "t"}"#.to_owned(), "`to` is missing: who gets it?"),
            (r#"{"to": "a@x.org", "text": "t"}"#.to_owned(), "`subject` is missing"),
            (
                r#"{"to": "a@x.org", "subject": "s"}"#.to_owned(),
                "`text` and `html` are both missing: write one of them",
            ),
            (whole(r#""htlm": "x""#), "`htlm` is no field of a mail: did you mean `html`?"),
            (whole(r#""cc": 3"#), "`cc` is a text or an array of texts, not int"),
            (whole(r#""cc": [3]"#), "`cc` is a text or an array of texts, not of int"),
            (whole(r#""list_unsubscribe": "ftp://x""#), "`list_unsubscribe` is an https or mailto link"),
            (whole(r#""list_unsubscribe": "https://x>, <y""#), "`list_unsubscribe` is an https or mailto link"),
            (whole(r#""list_unsubscribe_post": true"#), "`list_unsubscribe_post` needs an https link"),
            (r#"{"to": "nobody", "subject": "s", "text": "t"}"#.to_owned(), "`to` is no address: \"nobody\""),
            (
                r#"{"to": "a@x.org", "subject": "s\r\nBcc: all@x.org", "text": "t"}"#.to_owned(),
                "`subject` is one line without control characters",
            ),
        ];
        for (payload, why) in cases {
            let found = written(&payload).unwrap_err();
            assert!(found.starts_with(&format!("the payload makes no mail: {why}")), "{payload}: {found}");
        }
    }
}
