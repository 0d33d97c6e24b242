//! Keys: every form of key in the store, in one ordered, prefix-coded space.
//!
//! | space | key after the space byte | value |
//! |---|---|---|
//! | `m` meta | name | format version, secrets, counters |
//! | `b` bucket | limit name, bucket key element | row: what was spent |
//! | `o` ruling | limit name, bucket key element | row: what an operator decided about a key |
//! | `c` collection | collection name | row: its indexes and their state |
//! | `d` document | collection name, `_id` | row: the document |
//! | `i` index | collection name, index name, elements of the indexed values, `_id` | empty |
//! | `r` release | number, big-endian | row: the files of a release |
//! | `e` expiry | instant, 8 ordered bytes, then the whole key of a row | empty |
//!
//! Elements are order-preserving: comparing encoded bytes is comparing values, across types in the order
//! `() < bool < number < text < blob < array < map`. Integers and floats share one order, exactly.

use crate::time::Timestamp;
use crate::value::Value;

/// The first byte of a key: which kind of row it leads to.
pub(crate) mod space {
    pub(crate) const META: u8 = b'm';
    pub(crate) const BUCKET: u8 = b'b';
    pub(crate) const RULING: u8 = b'o';
    pub(crate) const COLLECTION: u8 = b'c';
    pub(crate) const DOCUMENT: u8 = b'd';
    pub(crate) const INDEX: u8 = b'i';
    pub(crate) const RELEASE: u8 = b'r';
    pub(crate) const EXPIRY: u8 = b'e';
}

/// Ends a name; `00 FF` is a zero byte within one.
const NAME_END: [u8; 2] = [0x00, 0x01];

/// How deeply arrays and maps of an element may nest when it is read back.
const MAX_DEPTH: usize = crate::value::MAX_DEPTH;

mod tag {
    pub(super) const END: u8 = 0x00;
    pub(super) const NULL: u8 = 0x02;
    pub(super) const FALSE: u8 = 0x03;
    pub(super) const TRUE: u8 = 0x04;
    pub(super) const NUMBER: u8 = 0x05;
    pub(super) const TEXT: u8 = 0x06;
    pub(super) const BLOB: u8 = 0x07;
    pub(super) const ARRAY: u8 = 0x08;
    pub(super) const MAP: u8 = 0x09;
}

/// A key being built: the space byte, then names and elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct KeyBuffer(Vec<u8>);

impl KeyBuffer {
    pub(crate) fn new(space: u8) -> Self {
        let mut bytes = Vec::with_capacity(48);
        bytes.push(space);
        KeyBuffer(bytes)
    }

    /// Appends a name, terminated so that no name is a prefix of another.
    pub(crate) fn name(mut self, name: &str) -> Self {
        put_escaped(&mut self.0, name.as_bytes());
        self
    }

    /// Appends a value as one ordered element.
    pub(crate) fn element(mut self, value: &Value) -> Self {
        put_element(&mut self.0, value);
        self
    }

    /// Appends bytes as they are; only at the end of a key, or when they delimit themselves.
    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn into_vec(self) -> Vec<u8> {
        self.0
    }
}

/// The key of a meta row.
pub(crate) fn meta(name: &str) -> Vec<u8> {
    KeyBuffer::new(space::META).name(name).into_vec()
}

/// The key of a document.
pub(crate) fn document(collection: &str, id: &str) -> Vec<u8> {
    KeyBuffer::new(space::DOCUMENT).name(collection).name(id).into_vec()
}

/// The key of an expiry entry: the row `row_key` may have expired at `at`, not earlier.
pub(crate) fn expiry(at: Timestamp, row_key: &[u8]) -> Vec<u8> {
    KeyBuffer::new(space::EXPIRY).raw(&ordered_i64(at.as_millis())).raw(row_key).into_vec()
}

/// Splits an expiry entry's key into its instant and the row's key.
pub(crate) fn split_expiry(key: &[u8]) -> Option<(Timestamp, &[u8])> {
    let rest = key.strip_prefix(&[space::EXPIRY])?;
    let (instant, row_key) = rest.split_first_chunk::<8>()?;
    Some((Timestamp::from_millis((u64::from_be_bytes(*instant) ^ (1 << 63)) as i64), row_key))
}

/// The least key greater than every key that begins with `prefix`; none when `prefix` is all 0xFF.
pub(crate) fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let keep = prefix.iter().rposition(|byte| *byte != 0xFF)?;
    let mut next = prefix[..=keep].to_vec();
    next[keep] += 1;
    Some(next)
}

/// Eight bytes whose order is the order of the integers.
pub(crate) fn ordered_i64(n: i64) -> [u8; 8] {
    ((n as u64) ^ (1 << 63)).to_be_bytes()
}

/// A name in bytes: zero bytes escaped as `00 FF`, ended by `00 01`, so that shorter names order first and what
/// follows one name never looks like the rest of a longer one.
fn put_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    if !bytes.contains(&0) {
        out.extend_from_slice(bytes);
    } else {
        for byte in bytes {
            out.push(*byte);
            if *byte == 0 {
                out.push(0xFF);
            }
        }
    }
    out.extend_from_slice(&NAME_END);
}

/// Reads what [`KeyBuffer::name`] wrote; returns the name and what follows.
pub(crate) fn take_name(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut name = Vec::new();
    let mut at = 0;
    loop {
        match (*bytes.get(at)?, bytes.get(at + 1)) {
            (0, Some(0xFF)) => {
                name.push(0);
                at += 2;
            }
            (0, Some(0x01)) => return Some((name, &bytes[at + 2..])),
            (0, _) => return None,
            (byte, _) => {
                name.push(byte);
                at += 1;
            }
        }
    }
}

/// Appends `value` so that the order of the bytes is the order of the values.
pub(crate) fn put_element(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.push(tag::NULL),
        Value::Bool(false) => out.push(tag::FALSE),
        Value::Bool(true) => out.push(tag::TRUE),
        Value::Int(n) => put_number(out, int_parts(*n)),
        Value::Float(x) => put_number(out, (if *x == 0.0 { 0.0 } else { *x }, 0)),
        Value::Text(text) => put_text(out, text),
        Value::Blob(bytes) => {
            out.push(tag::BLOB);
            put_escaped(out, bytes);
        }
        Value::Array(items) => {
            out.push(tag::ARRAY);
            for item in items {
                put_element(out, item);
            }
            out.push(tag::END);
        }
        Value::Map(map) => {
            out.push(tag::MAP);
            for (name, item) in map {
                put_text(out, name);
                put_element(out, item);
            }
            out.push(tag::END);
        }
    }
}

/// Appends a text element.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    out.push(tag::TEXT);
    put_escaped(out, text.as_bytes());
}

/// Appends an integer element.
pub(crate) fn put_int(out: &mut Vec<u8>, n: i64) {
    put_number(out, int_parts(n));
}

/// The largest float not above `n`, and how far `n` is above it: exact where a float alone is not.
fn int_parts(n: i64) -> (f64, u16) {
    let mut floor = n as f64;
    // Rounding may have gone up; then the float below is the one.
    if floor as i128 > i128::from(n) {
        floor = floor.next_down();
    }
    // At most 1023 lies between neighbouring floats below 2^63.
    (floor, (i128::from(n) - floor as i128) as u16)
}

fn put_number(out: &mut Vec<u8>, (floor, above): (f64, u16)) {
    let bits = floor.to_bits();
    let ordered = if bits >> 63 == 1 { !bits } else { bits ^ (1 << 63) };
    out.push(tag::NUMBER);
    out.extend_from_slice(&ordered.to_be_bytes());
    out.extend_from_slice(&above.to_be_bytes());
}

/// Reads one element; returns it and what follows. Floats that are whole numbers within `i64` come back as integers.
pub(crate) fn take_element(bytes: &[u8]) -> Option<(Value, &[u8])> {
    take_nested(bytes, MAX_DEPTH)
}

fn take_nested(bytes: &[u8], depth: usize) -> Option<(Value, &[u8])> {
    let depth = depth.checked_sub(1)?;
    let (first, rest) = bytes.split_first()?;
    match *first {
        tag::NULL => Some((Value::Null, rest)),
        tag::FALSE => Some((Value::Bool(false), rest)),
        tag::TRUE => Some((Value::Bool(true), rest)),
        tag::NUMBER => {
            let (ordered, rest) = rest.split_first_chunk::<8>()?;
            let (above, rest) = rest.split_first_chunk::<2>()?;
            let ordered = u64::from_be_bytes(*ordered);
            let bits = if ordered >> 63 == 1 { ordered ^ (1 << 63) } else { !ordered };
            let floor = Some(f64::from_bits(bits)).filter(|floor| floor.is_finite())?;
            let whole = (floor as i128).saturating_add(i128::from(u16::from_be_bytes(*above)));
            let value = match i64::try_from(whole) {
                Ok(n) if floor.fract() == 0.0 => Value::Int(n),
                _ => Value::Float(floor),
            };
            Some((value, rest))
        }
        tag::TEXT => {
            let (text, rest) = take_name(rest)?;
            Some((Value::Text(String::from_utf8(text).ok()?), rest))
        }
        tag::BLOB => {
            let (bytes, rest) = take_name(rest)?;
            Some((Value::Blob(bytes), rest))
        }
        tag::ARRAY => {
            let mut items = Vec::new();
            let mut rest = rest;
            while *rest.first()? != tag::END {
                let (item, after) = take_nested(rest, depth)?;
                items.push(item);
                rest = after;
            }
            Some((Value::Array(items), &rest[1..]))
        }
        tag::MAP => {
            let mut map = crate::value::Map::new();
            let mut rest = rest;
            while *rest.first()? != tag::END {
                let (name, after) = take_nested(rest, depth)?;
                let (item, after) = take_nested(after, depth)?;
                map.insert(name.as_str()?.to_owned(), item);
                rest = after;
            }
            Some((Value::Map(map), &rest[1..]))
        }
        _ => None,
    }
}

/// The text form of a key, for tools and messages: `bucket login ["a@x.com"]`, `document users "u1"`.
pub(crate) fn describe(key: &[u8]) -> String {
    fn try_describe(key: &[u8]) -> Option<String> {
        let (space, rest) = key.split_first()?;
        let name = |bytes| take_name(bytes).map(|(name, rest)| (String::from_utf8_lossy(&name).into_owned(), rest));
        Some(match *space {
            space::META => format!("meta {}", name(rest)?.0),
            space::COLLECTION => format!("collection {}", name(rest)?.0),
            space::BUCKET | space::RULING => {
                let what = if *space == space::BUCKET { "bucket" } else { "ruling" };
                let (limit, rest) = name(rest)?;
                match rest {
                    [] => format!("{what} {limit}"),
                    rest => format!("{what} {limit} {}", take_element(rest)?.0),
                }
            }
            space::DOCUMENT => {
                let (collection, rest) = name(rest)?;
                format!("document {collection} {:?}", name(rest)?.0)
            }
            space::INDEX => {
                let (collection, rest) = name(rest)?;
                format!("index entry {collection}.{}", name(rest)?.0)
            }
            space::RELEASE => format!("release {}", u64::from_be_bytes(rest.try_into().ok()?)),
            space::EXPIRY => {
                let (at, row) = split_expiry(key)?;
                format!("expiry at {at} of {}", describe(row))
            }
            _ => return None,
        })
    }
    try_describe(key).unwrap_or_else(|| format!("key {key:02x?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn element(value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        put_element(&mut out, value);
        out
    }

    fn scalar() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            prop_oneof![Just(i64::MAX), Just(i64::MIN), (1i64 << 53)..(1 << 54)].prop_map(Value::Int),
            any::<f64>().prop_filter("finite", |x| x.is_finite()).prop_map(Value::Float),
            "[a-c\0]{0,4}".prop_map(Value::Text),
        ]
    }

    /// Exact comparison of an integer with a float, through integers wide enough for both.
    fn exact(n: i64, x: f64) -> std::cmp::Ordering {
        if x >= 9.3e18 {
            std::cmp::Ordering::Less
        } else if x <= -9.3e18 {
            std::cmp::Ordering::Greater
        } else {
            let whole = x.floor() as i128;
            i128::from(n).cmp(&whole).then(if x.fract() == 0.0 {
                std::cmp::Ordering::Equal
            } else {
                std::cmp::Ordering::Less
            })
        }
    }

    fn compare(a: &Value, b: &Value) -> Option<std::cmp::Ordering> {
        Some(match (a, b) {
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            (Value::Float(a), Value::Float(b)) => a.partial_cmp(b)?,
            (Value::Int(a), Value::Float(b)) => exact(*a, *b),
            (Value::Float(a), Value::Int(b)) => exact(*b, *a).reverse(),
            (Value::Text(a), Value::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            _ => return None,
        })
    }

    proptest! {
        #[test]
        fn bytes_order_as_values_do(a in scalar(), b in scalar()) {
            if let Some(order) = compare(&a, &b) {
                prop_assert_eq!(element(&a).cmp(&element(&b)), order, "{:?} {:?}", a, b);
            }
        }

        #[test]
        fn elements_round_trip(items in proptest::collection::vec(scalar(), 0..4)) {
            let value = Value::Array(items);
            let bytes = element(&value);
            let (back, rest) = take_element(&bytes).unwrap();
            prop_assert!(rest.is_empty());
            prop_assert_eq!(element(&back), bytes);
        }

        #[test]
        fn names_round_trip(name in "[a\0]{0,6}", tail in "[\u{1}-z]{0,3}") {
            let bytes = KeyBuffer::new(space::META).name(&name).raw(tail.as_bytes()).into_vec();
            let (back, rest) = take_name(&bytes[1..]).unwrap();
            prop_assert_eq!(back, name.into_bytes());
            prop_assert_eq!(rest, tail.as_bytes());
        }
    }

    #[test]
    fn no_name_is_the_beginning_of_another() {
        let range = crate::store::Range::prefix(KeyBuffer::new(space::META).name("a").as_slice());
        assert!(!range.contains(KeyBuffer::new(space::META).name("a\0b").as_slice()));
        assert!(range.contains(KeyBuffer::new(space::META).name("a").raw(b"\xFFb").as_slice()));
    }

    #[test]
    fn damaged_elements_are_none() {
        assert_eq!(take_element(&[tag::ARRAY; 100_000]), None);
        let huge = [&[tag::NUMBER][..], &[0xFF; 10]].concat();
        assert_eq!(take_element(&huge), None, "no number is not a number");
    }

    #[test]
    fn successors() {
        assert_eq!(successor(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(successor(&[1, 0xFF]), Some(vec![2]));
        assert_eq!(successor(&[0xFF]), None);
    }
}
