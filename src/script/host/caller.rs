//! The caller in scripts: what the host vouches for.

use rhai::{Dynamic, EvalAltResult, Map, Module, NativeCallContext};

use crate::value::Value;

use super::super::call::with;
use super::super::convert;

pub(super) fn register(module: &mut Module) {
    module.set_native_fn("caller", |context: NativeCallContext| -> Result<Map, Box<EvalAltResult>> {
        with(&context, |call| Ok(convert::to_map((*call.caller).clone())))
    });
    module.set_native_fn("caller", |context: NativeCallContext, field: &str| -> Result<Dynamic, Box<EvalAltResult>> {
        with(&context, |call| Ok(convert::to_dynamic(call.caller.get(field).cloned().unwrap_or(Value::Null))))
    });
}
