//! Values: what arguments, documents and results are made of, between scripts, JSON, serde and the store.

mod de;
mod ser;

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A map of values, ordered by key.
pub type Map = BTreeMap<String, Value>;

/// How deeply values may nest, counted in containers.
pub(crate) const MAX_DEPTH: usize = 64;

/// A value as scripts, documents and JSON know it.
///
/// Integers and floats stay what they are: JSON `1` is an [`Int`](Value::Int), `1.0` a
/// [`Float`](Value::Float). NaN, infinities and integers beyond `i64` do not exist here; converting one is an error.
///
/// ```
/// use tollgate::Value;
/// let value = Value::from_json(r#"{"user": "ada", "tries": 3}"#).unwrap();
/// assert_eq!(value.get("tries"), Some(&Value::Int(3)));
/// assert_eq!(value.to_string(), r#"{"tries":3,"user":"ada"}"#);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// Nothing: `()` in scripts, `null` in JSON.
    #[default]
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A finite decimal number.
    Float(f64),
    /// Text.
    Text(String),
    /// Bytes; an array of numbers in JSON.
    Blob(Vec<u8>),
    /// Values in order.
    Array(Vec<Value>),
    /// Values by name, in the order of the names.
    Map(Map),
}

/// Why something could not become a [`Value`], or a value could not become it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidValue(pub(crate) String);

impl Value {
    /// Reads one JSON value. Errors say line and column, and name integers beyond 64 bits.
    pub fn from_json(text: &str) -> Result<Value, InvalidValue> {
        if let Some((at, token)) = oversized_integer(text) {
            let (line, column) = line_and_column(text, at);
            let why = format!("integer {token} is beyond 64 bits with a sign at line {line} column {column}");
            return Err(InvalidValue(why));
        }
        serde_json::from_str(text).map_err(|e| InvalidValue(e.to_string()))
    }

    /// The JSON text of this value, on one line, map keys in order.
    pub fn to_json(&self) -> String {
        // Writing to a string fails only for keys that are not text, and ours are.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Makes a value of anything serde can serialize.
    ///
    /// Errors: an integer beyond `i64`, NaN or an infinity, map keys that are not text.
    pub fn from_serde<T: Serialize + ?Sized>(item: &T) -> Result<Value, InvalidValue> {
        item.serialize(ser::ToValue)
    }

    /// Reads this value as a type that serde can deserialize.
    ///
    /// Errors: what the type does not take.
    pub fn into_serde<T: DeserializeOwned>(self) -> Result<T, InvalidValue> {
        T::deserialize(self)
    }

    /// The stored form: MessagePack.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let mut serializer = rmp_serde::Serializer::new(out).with_struct_map();
        // Writing to memory cannot fail and every variant has a MessagePack form.
        self.serialize(&mut serializer).expect("a value always has a MessagePack form");
    }

    /// Reads the stored form.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Value, InvalidValue> {
        let mut deserializer = rmp_serde::Deserializer::from_read_ref(bytes);
        deserializer.set_max_depth(MAX_DEPTH + 2);
        Value::deserialize(&mut deserializer).map_err(|e| InvalidValue(e.to_string()))
    }

    /// The member `name`, when this is a map that has it.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Map(map) => map.get(name),
            _ => None,
        }
    }

    /// The text, when this is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, when this is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(n) => Some(*n),
            _ => None,
        }
    }

    /// The truth value, when this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// The map, when this is one.
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// True for `Null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The name scripts use for this type.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "()",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Text(_) => "string",
            Value::Blob(_) => "blob",
            Value::Array(_) => "array",
            Value::Map(_) => "map",
        }
    }
}

/// The first integer of a JSON text that `i64` cannot hold; the JSON reader would round it to a float.
fn oversized_integer(text: &str) -> Option<(usize, &str)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let start = at;
                while at < bytes.len() && matches!(bytes[at], b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9') {
                    at += 1;
                }
                let token = &text[start..at];
                let whole = !token.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E' | b'+'));
                if whole && token.len() > 18 && token.parse::<i64>().is_err() {
                    return Some((start, token));
                }
            }
            _ => at += 1,
        }
    }
    None
}

/// Line and column, from 1, of a byte of a text.
fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The JSON text.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

macro_rules! from {
    ($($source:ty => |$item:ident| $value:expr),* $(,)?) => {$(
        impl From<$source> for Value {
            fn from($item: $source) -> Value { $value }
        }
    )*};
}

from! {
    () => |_unit| Value::Null,
    bool => |b| Value::Bool(b),
    i64 => |n| Value::Int(n),
    i32 => |n| Value::Int(n.into()),
    u32 => |n| Value::Int(n.into()),
    &str => |text| Value::Text(text.to_owned()),
    String => |text| Value::Text(text),
    Vec<Value> => |items| Value::Array(items),
    Map => |map| Value::Map(map),
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(b) => serializer.serialize_bool(*b),
            Value::Int(n) => serializer.serialize_i64(*n),
            Value::Float(x) => serializer.serialize_f64(*x),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Blob(bytes) => serializer.serialize_bytes(bytes),
            Value::Array(items) => {
                let mut seq = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    seq.serialize_element(item)?;
                }
                seq.end()
            }
            Value::Map(map) => {
                let mut out = serializer.serialize_map(Some(map.len()))?;
                for (name, item) in map {
                    out.serialize_entry(name, item)?;
                }
                out.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a null, boolean, number, text, array or map")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_bool<E>(self, b: bool) -> Result<Value, E> {
        Ok(Value::Bool(b))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Value, E> {
        Ok(Value::Int(n))
    }

    fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<Value, E> {
        i64::try_from(n)
            .map(Value::Int)
            .map_err(|_| E::custom(format_args!("integer {n} is beyond 64 bits with a sign")))
    }

    fn visit_i128<E: serde::de::Error>(self, n: i128) -> Result<Value, E> {
        i64::try_from(n)
            .map(Value::Int)
            .map_err(|_| E::custom(format_args!("integer {n} is beyond 64 bits with a sign")))
    }

    fn visit_f64<E: serde::de::Error>(self, x: f64) -> Result<Value, E> {
        if x.is_finite() { Ok(Value::Float(x)) } else { Err(E::custom(format_args!("{x} is not a finite number"))) }
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::Text(text))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Value, E> {
        Ok(Value::Blob(bytes.to_vec()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((name, item)) = access.next_entry::<String, Value>()? {
            if map.insert(name.clone(), item).is_some() {
                return Err(A::Error::custom(format_args!("the name `{name}` occurs twice")));
            }
        }
        Ok(Value::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_numbers_keep_their_kind() {
        assert_eq!(Value::from_json("1").unwrap(), Value::Int(1));
        assert_eq!(Value::from_json("1.0").unwrap(), Value::Float(1.0));
        assert_eq!(Value::Float(1.0).to_json(), "1.0");
        for text in ["9223372036854775808", "-9223372036854775809", "1e999", "{\"a\":1,\"a\":2}", "[1,", "NaN"] {
            assert!(Value::from_json(text).is_err(), "{text}");
        }
    }

    #[test]
    fn serde_refuses_what_cannot_be_held() {
        assert!(Value::from_serde(&u64::MAX).is_err());
        assert!(Value::from_serde(&f64::NAN).is_err());
        assert_eq!(
            Value::from_serde(&("a", 1, Some(2.5))).unwrap(),
            Value::Array(vec!["a".into(), 1.into(), Value::Float(2.5)])
        );
        let ip: std::net::IpAddr = "::1".parse().unwrap();
        assert_eq!(Value::from_serde(&ip).unwrap(), Value::Text("::1".into()));
    }

    #[test]
    fn serde_types_come_back_as_they_were() {
        #[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
        enum Plan {
            Free,
            Paid(u8),
            Team(i64, String),
            Custom { seats: u32 },
        }
        #[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
        struct Account {
            id: u64,
            ratio: f32,
            plans: Vec<Plan>,
            note: Option<Box<Account>>,
            letter: char,
            pair: (i8, bool),
            unit: (),
        }
        let plans = vec![Plan::Free, Plan::Paid(3), Plan::Team(-1, "x".into()), Plan::Custom { seats: 5 }];
        let inner = Account { id: 1, ratio: 0.5, plans, note: None, letter: 'ß', pair: (-1, true), unit: () };
        let account = Account { note: Some(Box::new(inner.clone())), ..inner };
        let value = Value::from_serde(&account).unwrap();
        assert_eq!(value.clone().into_serde::<Account>().unwrap(), account);
        assert_eq!(Value::from_json(&value.to_json()).unwrap(), value, "as JSON has it");
        assert_eq!(value.clone().into_serde::<Value>().unwrap(), value);
        assert!(Value::from_serde(&std::collections::HashMap::from([(1, 2)])).is_err(), "names are text");
        assert!(Value::Int(300).into_serde::<u8>().is_err());
        assert!(Value::Text("Gone".into()).into_serde::<Plan>().is_err());
    }

    #[test]
    fn stored_form_round_trips() {
        let value = Value::from_json(r#"{"a":[1,-2.5,null,true,"x"],"m":{"z":9223372036854775807}}"#).unwrap();
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        assert_eq!(Value::decode(&bytes).unwrap(), value);
        assert!(Value::decode(&bytes[..bytes.len() - 1]).is_err());
    }
}
