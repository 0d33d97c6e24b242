//! Keys in scripts: what may stand where the key of a bucket is due.

use rhai::{Dynamic, EvalAltResult, Module};

use crate::limit::Key;

use super::super::convert;
use super::super::raised::{Failure, Raised};

/// The key of a limit's one global bucket, for where a key cannot be left out because something follows it. Nothing
/// else becomes this key: neither `()` nor an empty array, which is what a missing argument often is.
#[derive(Clone, Debug)]
struct GlobalKey;

pub(super) fn register(module: &mut Module) {
    module.set_custom_type::<GlobalKey>("global_key");
    module.set_native_fn("global_key", || -> Result<Dynamic, Box<EvalAltResult>> { Ok(Dynamic::from(GlobalKey)) });
}

/// A key of text, checked for its length.
pub(super) fn text_key(text: &str) -> Result<Key, Failure> {
    let key = Key::from(text);
    key.check().map_err(|invalid| Failure::from(Raised::new("bad_key", invalid.to_string())))?;
    Ok(key)
}

pub(super) fn any_key(value: &Dynamic) -> Result<Key, Failure> {
    if let Ok(text) = value.as_immutable_string_ref() {
        return text_key(&text);
    }
    if value.is::<GlobalKey>() {
        return Ok(Key::global());
    }
    let value = convert::from_dynamic(value).map_err(|why| Raised::new("bad_key", why))?;
    Key::from_value(&value).map_err(|invalid| Failure::from(Raised::new("bad_key", invalid.to_string())))
}
