//! Elements: values in bytes whose order is the order of the values, for keys.
//!
//! Types follow each other as `() < bool < number < text < blob < array < map`; integers and floats share one
//! order, exactly. Each element says where it ends, so elements can stand one after another.

use smallvec::SmallVec;

use crate::value::Value;

/// Bytes being written, most often few enough to ask for no memory.
pub(crate) type Encoded = SmallVec<[u8; 64]>;

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

/// A name in bytes: zero bytes escaped as `00 FF`, ended by `00 01`, so that shorter names order first and what
/// follows one name never looks like the rest of a longer one.
pub(crate) fn put_name(out: &mut Encoded, bytes: &[u8]) {
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
pub(crate) fn put_element(out: &mut Encoded, value: &Value) {
    match value {
        Value::Null => out.push(tag::NULL),
        Value::Bool(false) => out.push(tag::FALSE),
        Value::Bool(true) => out.push(tag::TRUE),
        Value::Int(n) => put_number(out, int_parts(*n)),
        Value::Float(x) => put_number(out, (if *x == 0.0 { 0.0 } else { *x }, 0)),
        Value::Text(text) => put_text(out, text),
        Value::Blob(bytes) => {
            out.push(tag::BLOB);
            put_name(out, bytes);
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
pub(crate) fn put_text(out: &mut Encoded, text: &str) {
    out.push(tag::TEXT);
    put_name(out, text.as_bytes());
}

/// Appends an integer element.
pub(crate) fn put_int(out: &mut Encoded, n: i64) {
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

fn put_number(out: &mut Encoded, (floor, above): (f64, u16)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn element(value: &Value) -> Encoded {
        let mut out = Encoded::new();
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
            let mut bytes = Encoded::new();
            put_name(&mut bytes, name.as_bytes());
            bytes.extend_from_slice(tail.as_bytes());
            let (back, rest) = take_name(&bytes).unwrap();
            prop_assert_eq!(back, name.into_bytes());
            prop_assert_eq!(rest, tail.as_bytes());
        }
    }

    #[test]
    fn damaged_elements_are_none() {
        assert_eq!(take_element(&[tag::ARRAY; 100_000]), None);
        let huge = [&[tag::NUMBER][..], &[0xFF; 10]].concat();
        assert_eq!(take_element(&huge), None, "no number is not a number");
    }
}
