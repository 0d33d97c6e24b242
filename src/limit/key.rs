//! A key: whose bucket it is.
//!
//! It is held as the ordered element that ends a row's key. `store::key` defines those elements; that file is pure
//! and knows no store, so taking it from there points at no layer above.

use std::fmt;
use std::str::FromStr;

use crate::element::{Encoded, put_element, put_int, put_text, take_element};
use crate::value::Value;

/// The longest key, in encoded bytes.
pub(crate) const MAX_KEY_BYTES: usize = 1024;

/// Whose bucket: a text, an integer, or an array of those; or nobody's, the one global bucket of a limit.
///
/// Keys of different kinds and arrays of different parts never meet in one bucket.
///
/// ```
/// use tollgate::Key;
/// assert_ne!(Key::from("1"), Key::from(1));
/// assert_ne!(Key::from(""), Key::global());
/// assert_ne!(Key::parts(["a", "b:c"])?, Key::parts(["a:b", "c"])?);
/// assert_eq!(r#"["org",1]"#.parse::<Key>()?.to_string(), r#"["org",1]"#);
/// # Ok::<(), tollgate::InvalidKey>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// One ordered element, as it ends the row's key; nothing for the global bucket.
    encoded: Encoded,
}

/// One part of a key that is an array.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyPart {
    /// Text.
    Text(String),
    /// A whole number.
    Int(i64),
}

/// Why something is not a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKey {
    /// Of a type that keys are not made of.
    #[error("key is {0}, must be a string, an integer or an array of those")]
    Type(String),
    /// An empty array.
    #[error("key is an empty array, must have at least one part; leave the key out for the global bucket")]
    Empty,
    /// Too long.
    #[error("key takes {0} bytes, must be at most {MAX_KEY_BYTES}; hash it, or use a shorter one")]
    TooLong(usize),
}

impl Key {
    /// The key of the one global bucket of a limit.
    pub const fn global() -> Key {
        Key { encoded: Encoded::new_const() }
    }

    /// A key of several parts. Errors: no part, or more than 1 KiB.
    pub fn parts<P: Into<KeyPart>>(parts: impl IntoIterator<Item = P>) -> Result<Key, InvalidKey> {
        let parts = parts.into_iter().map(|part| match part.into() {
            KeyPart::Text(text) => Value::Text(text),
            KeyPart::Int(n) => Value::Int(n),
        });
        Key::from_value(&Value::Array(parts.collect()))
    }

    /// A key out of a script's or JSON's value.
    ///
    /// Errors: `()`, a float, a bool, a map, a blob, an empty or nested array, more than 1 KiB.
    pub fn from_value(value: &Value) -> Result<Key, InvalidKey> {
        let key = match value {
            Value::Text(text) => {
                // Before copying: a text this long is refused whatever is in it.
                check_len(text.len())?;
                Key::from(&**text)
            }
            Value::Int(n) => Key::from(*n),
            Value::Array(items) if items.is_empty() => return Err(InvalidKey::Empty),
            Value::Array(items) => {
                check_len(items.len())?;
                for item in items {
                    match item {
                        Value::Text(text) => check_len(text.len())?,
                        Value::Int(_) => {}
                        other => return Err(InvalidKey::Type(format!("an array with a {} in it", other.type_name()))),
                    }
                }
                let mut encoded = Encoded::new();
                put_element(&mut encoded, value);
                Key { encoded }
            }
            Value::Null => return Err(InvalidKey::Type("()".into())),
            other => return Err(InvalidKey::Type(format!("a {}", other.type_name()))),
        };
        key.check()?;
        Ok(key)
    }

    /// Whether the key is short enough. What is made by `From` is not checked yet; every operation checks it.
    pub fn check(&self) -> Result<(), InvalidKey> {
        check_len(self.encoded.len())
    }

    /// The key as a value; `Null` for the global bucket.
    pub fn to_value(&self) -> Value {
        // Only this file fills `encoded`, and with elements only.
        take_element(&self.encoded).map_or(Value::Null, |(value, _)| value)
    }

    /// Whether this is the global bucket's.
    pub fn is_global(&self) -> bool {
        self.encoded.is_empty()
    }

    /// A key that is the keyed hash of another.
    pub(crate) fn of_hash(hash: Vec<u8>) -> Key {
        let mut encoded = Encoded::new();
        put_element(&mut encoded, &Value::Blob(hash));
        Key { encoded }
    }

    /// Whether this is the keyed hash of another key, as limits that hash their keys list it.
    pub fn is_hash(&self) -> bool {
        matches!(take_element(&self.encoded), Some((Value::Blob(_), _)))
    }

    /// What follows the limit's name in the row's key.
    pub(crate) fn encoded(&self) -> &[u8] {
        &self.encoded
    }

    /// The key that a row's key ends with; none when those bytes are no key.
    pub(crate) fn decode(encoded: &[u8]) -> Option<Key> {
        if !encoded.is_empty() {
            let (_, rest) = take_element(encoded)?;
            if !rest.is_empty() {
                return None;
            }
        }
        Some(Key { encoded: Encoded::from_slice(encoded) })
    }
}

fn check_len(bytes: usize) -> Result<(), InvalidKey> {
    if bytes > MAX_KEY_BYTES { Err(InvalidKey::TooLong(bytes)) } else { Ok(()) }
}

impl From<&str> for Key {
    fn from(text: &str) -> Key {
        let mut encoded = Encoded::with_capacity(text.len() + 3);
        put_text(&mut encoded, text);
        Key { encoded }
    }
}

impl From<String> for Key {
    fn from(text: String) -> Key {
        Key::from(&*text)
    }
}

impl From<&String> for Key {
    fn from(text: &String) -> Key {
        Key::from(&**text)
    }
}

impl From<i64> for Key {
    fn from(n: i64) -> Key {
        let mut encoded = Encoded::new();
        put_int(&mut encoded, n);
        Key { encoded }
    }
}

impl From<&Key> for Key {
    fn from(key: &Key) -> Key {
        key.clone()
    }
}

impl From<&str> for KeyPart {
    fn from(text: &str) -> KeyPart {
        KeyPart::Text(text.to_owned())
    }
}

impl From<String> for KeyPart {
    fn from(text: String) -> KeyPart {
        KeyPart::Text(text)
    }
}

impl From<i64> for KeyPart {
    fn from(n: i64) -> KeyPart {
        KeyPart::Int(n)
    }
}

/// As on a command line: a JSON array, a JSON string or a whole number is that, everything else is text.
impl FromStr for Key {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Key, InvalidKey> {
        let key = match text.parse::<i64>() {
            // `007` and `+7` are texts: they would print differently as numbers.
            Ok(n) if n.to_string() == text => return Ok(Key::from(n)),
            _ if text.starts_with(['[', '"']) => match Value::from_json(text) {
                Ok(value) => Key::from_value(&value)?,
                Err(_) => Key::from(text),
            },
            _ => Key::from(text),
        };
        key.check()?;
        Ok(key)
    }
}

/// As [`FromStr`] reads it; `()` for the global bucket.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_global() {
            return f.write_str("()");
        }
        match self.to_value() {
            Value::Text(text)
                if !text.is_empty()
                    && text != "()"
                    && !text.contains(|c: char| c.is_control())
                    && text.parse::<Key>().as_ref() == Ok(self) =>
            {
                f.write_str(&text)
            }
            // Nothing reads this back: a hash says whose bucket it was to nobody.
            Value::Blob(hash) => {
                f.write_str("hash:")?;
                hash.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            value => write!(f, "{value}"),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_of_different_kinds_and_parts_never_meet() {
        let keys: Vec<Key> = [
            r#""""#,
            r#""1""#,
            "1",
            "[1]",
            r#"["1"]"#,
            r#"["a","b:c"]"#,
            r#"["a:b","c"]"#,
            r#"["a","b/c"]"#,
            r#"["a/b","c"]"#,
            r#"["a",""]"#,
            r#"["","a"]"#,
            r#"["a"]"#,
            r#""a""#,
            r#"["a:","b"]"#,
            r#"["a",":b"]"#,
            r#""a\u0000""#,
        ]
        .iter()
        .map(|text| text.parse().unwrap())
        .chain([Key::global()])
        .collect();
        for (i, a) in keys.iter().enumerate() {
            for b in &keys[i + 1..] {
                assert_ne!(a, b);
                assert!(!a.encoded.starts_with(b"\0") && a.to_string() != b.to_string());
            }
        }
    }

    #[test]
    fn what_is_no_key_is_an_error_and_never_a_shared_bucket() {
        for json in ["null", "1.0", "0.5", "true", "{}", "[]", "[[1]]", "[1,null]", "[1.5]"] {
            assert!(Key::from_value(&Value::from_json(json).unwrap()).is_err(), "{json}");
        }
        assert!(Key::from_value(&Value::Blob(vec![1])).is_err());
        assert!("[]".parse::<Key>().is_err());
        assert_eq!(
            Key::from_value(&Value::Text("x".repeat(1022))).unwrap_err(),
            InvalidKey::TooLong(1025),
            "three bytes frame a text"
        );
        assert!(Key::from_value(&Value::Text("x".repeat(1021))).is_ok());
        assert!(Key::from("x".repeat(1022)).check().is_err());
        assert!(Key::parts(["x".repeat(600), "y".repeat(600)]).is_err());
        assert!(Key::parts(Vec::<KeyPart>::new()).is_err());
    }

    #[test]
    fn command_line_texts() {
        for (text, value) in [
            ("a@x.com", r#""a@x.com""#),
            ("42", "42"),
            ("-7", "-7"),
            ("007", r#""007""#),
            ("\"42\"", r#""42""#),
            ("[broken", r#""[broken""#),
            ("99999999999999999999", r#""99999999999999999999""#),
            (r#"["org", 1]"#, r#"["org",1]"#),
        ] {
            assert_eq!(text.parse::<Key>().unwrap().to_value().to_json(), value, "{text}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_reading_back_is_the_same_key(text in any::<String>(), n in any::<i64>()) {
            for key in [Key::from(&*text), Key::from(n), Key::parts([KeyPart::from(text.as_str()), n.into()]).unwrap()] {
                prop_assert_eq!(key.to_string().parse::<Key>().unwrap(), key.clone());
                prop_assert_eq!(Key::from_value(&key.to_value()).unwrap(), key.clone());
                prop_assert_eq!(Key::decode(key.encoded()), Some(key));
            }
        }

        #[test]
        fn any_text_reads_without_a_panic(text in any::<String>()) {
            let _ = text.parse::<Key>();
        }
    }
}
