//! The log in scripts: lines that count when the call's run does.

use rhai::{Dynamic, EvalAltResult, ImmutableString, Map, Module, NativeCallContext};

use super::super::call::{Call, Level, with};
use super::super::convert;
use super::super::raised::{Failure, Raised};

type Answer = Result<(), Box<EvalAltResult>>;

pub(super) fn register(module: &mut Module) {
    module.set_native_fn("log", |context: NativeCallContext, level: &str, message: Dynamic| -> Answer {
        with(&context, |call| add(call, level, &message, &Map::new()))
    });
    module.set_native_fn("log", |context: NativeCallContext, level: &str, message: Dynamic, data: Map| -> Answer {
        with(&context, |call| add(call, level, &message, &data))
    });
}

fn add(call: &mut Call, level: &str, message: &Dynamic, data: &Map) -> Result<(), Failure> {
    let level = match level {
        "trace" => Level::Trace,
        "debug" => Level::Debug,
        "info" => Level::Info,
        "warn" => Level::Warn,
        "error" => Level::Error,
        _ => {
            let message = format!("`{level}` is no log level: use trace, debug, info, warn or error");
            return Err(Raised::new("bad_value", message).into());
        }
    };
    let data = convert::from_map(data).map_err(|why| Raised::new("bad_value", why))?;
    let text = match message.as_immutable_string_ref() {
        Ok(text) => ImmutableString::clone(&text),
        Err(_) => convert::from_dynamic(message).map_err(|why| Raised::new("bad_value", why))?.to_json().into(),
    };
    call.log(level, &text, data)
}
