//! From serde: a serializer that makes a value.

use std::fmt::Display;

use serde::ser::{self, Serialize};

use super::{InvalidValue, Map, Value};

/// Makes a [`Value`] of what serde walks through.
pub(super) struct ToValue;

impl ser::Error for InvalidValue {
    fn custom<T: Display>(message: T) -> Self {
        InvalidValue(message.to_string())
    }
}

type Made = Result<Value, InvalidValue>;

fn whole<N: Copy + Display>(n: N) -> Made
where
    i64: TryFrom<N>,
{
    i64::try_from(n).map(Value::Int).map_err(|_| InvalidValue(format!("integer {n} is beyond 64 bits with a sign")))
}

impl ser::Serializer for ToValue {
    type Ok = Value;
    type Error = InvalidValue;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Variant<Items>;
    type SerializeMap = Entries;
    type SerializeStruct = Entries;
    type SerializeStructVariant = Variant<Entries>;

    fn serialize_bool(self, b: bool) -> Made {
        Ok(Value::Bool(b))
    }
    fn serialize_i8(self, n: i8) -> Made {
        whole(n)
    }
    fn serialize_i16(self, n: i16) -> Made {
        whole(n)
    }
    fn serialize_i32(self, n: i32) -> Made {
        whole(n)
    }
    fn serialize_i64(self, n: i64) -> Made {
        Ok(Value::Int(n))
    }
    fn serialize_i128(self, n: i128) -> Made {
        whole(n)
    }
    fn serialize_u8(self, n: u8) -> Made {
        whole(n)
    }
    fn serialize_u16(self, n: u16) -> Made {
        whole(n)
    }
    fn serialize_u32(self, n: u32) -> Made {
        whole(n)
    }
    fn serialize_u64(self, n: u64) -> Made {
        whole(n)
    }
    fn serialize_u128(self, n: u128) -> Made {
        whole(n)
    }
    fn serialize_f32(self, x: f32) -> Made {
        self.serialize_f64(x.into())
    }
    fn serialize_f64(self, x: f64) -> Made {
        if x.is_finite() { Ok(Value::Float(x)) } else { Err(InvalidValue(format!("{x} is not a finite number"))) }
    }
    fn serialize_char(self, c: char) -> Made {
        Ok(Value::Text(c.to_string()))
    }
    fn serialize_str(self, text: &str) -> Made {
        Ok(Value::Text(text.to_owned()))
    }
    fn serialize_bytes(self, bytes: &[u8]) -> Made {
        Ok(Value::Blob(bytes.to_vec()))
    }
    fn serialize_none(self) -> Made {
        Ok(Value::Null)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Made {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Made {
        Ok(Value::Null)
    }
    fn serialize_unit_struct(self, _name: &'static str) -> Made {
        Ok(Value::Null)
    }
    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Made {
        self.serialize_str(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Made {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Made {
        tagged(variant, value.serialize(self)?)
    }
    fn serialize_seq(self, length: Option<usize>) -> Result<Items, InvalidValue> {
        // A length is only a hint, and may be wrong by any amount.
        Ok(Items(Vec::with_capacity(length.unwrap_or(0).min(1_024))))
    }
    fn serialize_tuple(self, length: usize) -> Result<Items, InvalidValue> {
        self.serialize_seq(Some(length))
    }
    fn serialize_tuple_struct(self, _name: &'static str, length: usize) -> Result<Items, InvalidValue> {
        self.serialize_seq(Some(length))
    }
    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Variant<Items>, InvalidValue> {
        Ok(Variant { name: variant, content: self.serialize_seq(Some(length))? })
    }
    fn serialize_map(self, _length: Option<usize>) -> Result<Entries, InvalidValue> {
        Ok(Entries { map: Map::new(), name: None })
    }
    fn serialize_struct(self, _name: &'static str, length: usize) -> Result<Entries, InvalidValue> {
        self.serialize_map(Some(length))
    }
    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Variant<Entries>, InvalidValue> {
        Ok(Variant { name: variant, content: self.serialize_map(Some(length))? })
    }
}

fn tagged(variant: &str, content: Value) -> Made {
    Ok(Value::Map(Map::from([(variant.to_owned(), content)])))
}

/// An array being filled.
pub(super) struct Items(Vec<Value>);

impl Items {
    fn push<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), InvalidValue> {
        self.0.push(item.serialize(ToValue)?);
        Ok(())
    }
}

impl ser::SerializeSeq for Items {
    type Ok = Value;
    type Error = InvalidValue;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), InvalidValue> {
        self.push(item)
    }
    fn end(self) -> Made {
        Ok(Value::Array(self.0))
    }
}

impl ser::SerializeTuple for Items {
    type Ok = Value;
    type Error = InvalidValue;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), InvalidValue> {
        self.push(item)
    }
    fn end(self) -> Made {
        Ok(Value::Array(self.0))
    }
}

impl ser::SerializeTupleStruct for Items {
    type Ok = Value;
    type Error = InvalidValue;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), InvalidValue> {
        self.push(item)
    }
    fn end(self) -> Made {
        Ok(Value::Array(self.0))
    }
}

/// A map being filled.
pub(super) struct Entries {
    map: Map,
    name: Option<String>,
}

impl Entries {
    fn put<T: Serialize + ?Sized>(&mut self, name: String, item: &T) -> Result<(), InvalidValue> {
        self.map.insert(name, item.serialize(ToValue)?);
        Ok(())
    }
}

impl ser::SerializeMap for Entries {
    type Ok = Value;
    type Error = InvalidValue;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<(), InvalidValue> {
        match name.serialize(ToValue)? {
            Value::Text(name) => self.name = Some(name),
            other => return Err(InvalidValue(format!("the name of an entry is {other}, must be text"))),
        }
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), InvalidValue> {
        let name = self.name.take().ok_or_else(|| InvalidValue("an entry has a value and no name".into()))?;
        self.put(name, item)
    }
    fn end(self) -> Made {
        Ok(Value::Map(self.map))
    }
}

impl ser::SerializeStruct for Entries {
    type Ok = Value;
    type Error = InvalidValue;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, item: &T) -> Result<(), InvalidValue> {
        self.put(name.to_owned(), item)
    }
    fn end(self) -> Made {
        Ok(Value::Map(self.map))
    }
}

/// A variant with content: a map of the variant's name to it.
pub(super) struct Variant<C> {
    name: &'static str,
    content: C,
}

impl ser::SerializeTupleVariant for Variant<Items> {
    type Ok = Value;
    type Error = InvalidValue;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), InvalidValue> {
        self.content.push(item)
    }
    fn end(self) -> Made {
        tagged(self.name, Value::Array(self.content.0))
    }
}

impl ser::SerializeStructVariant for Variant<Entries> {
    type Ok = Value;
    type Error = InvalidValue;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, item: &T) -> Result<(), InvalidValue> {
        self.content.put(name.to_owned(), item)
    }
    fn end(self) -> Made {
        tagged(self.name, Value::Map(self.content.map))
    }
}
