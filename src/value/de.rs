//! To serde: a value as what serde reads from.

use std::fmt::Display;

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, Unexpected, VariantAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::{InvalidValue, Value};

impl de::Error for InvalidValue {
    fn custom<T: Display>(message: T) -> Self {
        InvalidValue(message.to_string())
    }
}

impl<'de> IntoDeserializer<'de, InvalidValue> for Value {
    type Deserializer = Value;
    fn into_deserializer(self) -> Value {
        self
    }
}

impl<'de> Deserializer<'de> for Value {
    type Error = InvalidValue;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidValue> {
        match self {
            Value::Null => visitor.visit_unit(),
            Value::Bool(b) => visitor.visit_bool(b),
            Value::Int(n) => visitor.visit_i64(n),
            Value::Float(x) => visitor.visit_f64(x),
            Value::Text(text) => visitor.visit_string(text),
            Value::Blob(bytes) => visitor.visit_byte_buf(bytes),
            Value::Array(items) => {
                let mut items = SeqDeserializer::new(items.into_iter());
                let value = visitor.visit_seq(&mut items)?;
                items.end()?;
                Ok(value)
            }
            Value::Map(map) => {
                let mut entries = MapDeserializer::new(map.into_iter());
                let value = visitor.visit_map(&mut entries)?;
                entries.end()?;
                Ok(value)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidValue> {
        match self {
            Value::Null => visitor.visit_none(),
            value => visitor.visit_some(value),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, InvalidValue> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, InvalidValue> {
        let (name, content) = match self {
            Value::Text(name) => (name, None),
            Value::Map(map) if map.len() == 1 => match map.into_iter().next() {
                Some((name, content)) => (name, Some(content)),
                None => return Err(de::Error::invalid_value(Unexpected::Map, &"a map of one entry")),
            },
            other => return Err(InvalidValue(format!("{other} is no variant: it is text, or a map of one entry"))),
        };
        visitor.visit_enum(Chosen { name, content })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// A variant by its name, with its content.
struct Chosen {
    name: String,
    content: Option<Value>,
}

impl<'de> de::EnumAccess<'de> for Chosen {
    type Error = InvalidValue;
    type Variant = Content;
    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Content), InvalidValue> {
        Ok((seed.deserialize(Value::Text(self.name))?, Content(self.content)))
    }
}

struct Content(Option<Value>);

impl Content {
    fn value(self) -> Result<Value, InvalidValue> {
        self.0.ok_or_else(|| InvalidValue("the variant lacks its content: write a map of one entry".into()))
    }
}

impl<'de> VariantAccess<'de> for Content {
    type Error = InvalidValue;

    fn unit_variant(self) -> Result<(), InvalidValue> {
        match self.0 {
            None | Some(Value::Null) => Ok(()),
            Some(other) => Err(InvalidValue(format!("{other} belongs to no variant without content"))),
        }
    }
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, InvalidValue> {
        seed.deserialize(self.value()?)
    }
    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, InvalidValue> {
        self.value()?.deserialize_any(visitor)
    }
    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, InvalidValue> {
        self.value()?.deserialize_any(visitor)
    }
}
