//! Schedules in scripts: declared at file level.

use rhai::{Dynamic, EvalAltResult, Map as Fields, Module, NativeCallContext};

use crate::job::InvalidJob;
use crate::job::schedule::Schedule;
use crate::time::parse_duration_ms;
use crate::value::Map;

use super::super::convert::{self, type_name};
use super::super::raised::Raised;
use super::collections::at_load;

/// A schedule being declared, as a value of scripts.
#[derive(Clone, Debug)]
pub(in super::super) struct ScheduleValue(pub(in super::super) Schedule);

type Answer<T> = Result<T, Box<EvalAltResult>>;

pub(super) fn register(module: &mut Module) {
    module.set_custom_type::<ScheduleValue>("schedule");
    module.set_native_fn("every", |context: NativeCallContext, period: Dynamic, handler: Dynamic| {
        every(&context, &period, &handler, &Fields::new())
    });
    module.set_native_fn("every", |context: NativeCallContext, period: Dynamic, handler: Dynamic, options: Fields| {
        every(&context, &period, &handler, &options)
    });
    module.set_native_fn("cron", |context: NativeCallContext, pattern: Dynamic, handler: Dynamic| {
        cron(&context, &pattern, &handler, &Fields::new())
    });
    module.set_native_fn("cron", |context: NativeCallContext, pattern: Dynamic, handler: Dynamic, options: Fields| {
        cron(&context, &pattern, &handler, &options)
    });
}

fn every(context: &NativeCallContext, period: &Dynamic, handler: &Dynamic, options: &Fields) -> Answer<ScheduleValue> {
    at_load(context)?;
    let period_ms = match (period.as_int(), period.as_immutable_string_ref()) {
        (Ok(ms), _) => ms,
        (_, Ok(text)) => parse_duration_ms(&text).map_err(|why| refused(context, why.to_string()))?,
        _ => {
            let message = format!("a period is text such as \"5m\" or milliseconds, not {}", type_name(period));
            return Err(refused(context, message));
        }
    };
    let (handler, options) = (name(context, "handler", handler)?, options_of(context, options)?);
    made(context, Schedule::every(period_ms, &handler, &options))
}

fn cron(context: &NativeCallContext, pattern: &Dynamic, handler: &Dynamic, options: &Fields) -> Answer<ScheduleValue> {
    at_load(context)?;
    let pattern = name(context, "pattern", pattern)?;
    let (handler, options) = (name(context, "handler", handler)?, options_of(context, options)?);
    made(context, Schedule::cron(&pattern, &handler, &options))
}

fn name(context: &NativeCallContext, what: &str, value: &Dynamic) -> Answer<String> {
    let text = value.as_immutable_string_ref().map(|text| text.to_string());
    text.map_err(|_| refused(context, format!("the {what} of a schedule is a text, not {}", type_name(value))))
}

fn options_of(context: &NativeCallContext, options: &Fields) -> Answer<Map> {
    convert::from_map(options).map_err(|why| refused(context, why.to_string()))
}

fn made(context: &NativeCallContext, schedule: Result<Schedule, InvalidJob>) -> Answer<ScheduleValue> {
    schedule.map(ScheduleValue).map_err(|why| refused(context, why.message))
}

fn refused(context: &NativeCallContext, message: String) -> Box<EvalAltResult> {
    Raised::new("bad_schedule", message).into_error(context.call_position())
}
