//! Jobs in scripts: enqueued, called off, looked at.

use rhai::{Dynamic, EvalAltResult, ImmutableString, Module, NativeCallContext};

use crate::job::{self, InvalidJob, JobError, JobOptions};
use crate::value::{Map, Value};

use super::super::call::{Call, with};
use super::super::convert::{self, type_name};
use super::super::raised::{Failure, Raised, raise};
use super::values::new_id;

type Answer<T> = Result<T, Box<EvalAltResult>>;

impl From<JobError> for Failure {
    fn from(error: JobError) -> Failure {
        match error {
            JobError::Invalid(invalid) => invalid.into(),
            JobError::Fault(fault) => fault.into(),
        }
    }
}

impl From<InvalidJob> for Failure {
    fn from(invalid: InvalidJob) -> Failure {
        Raised::new(invalid.code, invalid.message).into()
    }
}

pub(super) fn register(module: &mut Module) {
    module.set_native_fn("enqueue", |context: NativeCallContext, handler: Dynamic, payload: Dynamic| {
        with(&context, |call| enqueued(call, &handler, &payload, &Map::new()))
    });
    module.set_native_fn(
        "enqueue",
        |context: NativeCallContext, handler: Dynamic, payload: Dynamic, options: Dynamic| {
            with(&context, |call| match convert::from_dynamic(&options) {
                Ok(Value::Map(options)) => enqueued(call, &handler, &payload, &options),
                Ok(other) => raise("bad_job", format!("the options of a job are a map, not {}", other.type_name())),
                Err(why) => raise("bad_job", why),
            })
        },
    );
    module.set_native_fn("cancel_job", |context: NativeCallContext, id: Dynamic| -> Answer<bool> {
        with(&context, |call| Ok(job::change::cancel(&mut call.transaction, &id_of(&id)?)?))
    });
    module.set_native_fn("job", |context: NativeCallContext, id: Dynamic| -> Answer<Dynamic> {
        with(&context, |call| {
            call.transaction.spend_reads(1)?;
            let found = job::get(&mut call.transaction, &id_of(&id)?)?;
            Ok(found.map_or(Dynamic::UNIT, |job| convert::to_dynamic(job.to_value())))
        })
    });
}

fn enqueued(call: &mut Call, handler: &Dynamic, payload: &Dynamic, options: &Map) -> Result<ImmutableString, Failure> {
    let Ok(handler) = handler.as_immutable_string_ref() else {
        return raise("bad_job", format!("a job names its handler by a text, not {}", type_name(handler)));
    };
    let payload = convert::from_dynamic(payload).map_err(|why| Raised::new("bad_job", why))?;
    let options = JobOptions::parse(options)?;
    // Drawn before anything is looked at: which ids a call makes must not depend on what it finds.
    let id = new_id(call);
    call.handlers.as_ref().map_or_else(
        || raise("bad_job", "no jobs can be enqueued here"),
        |handlers| Ok(handlers.check(&handler, &payload)?),
    )?;
    let ordinal = call.enqueued;
    call.enqueued = ordinal.saturating_add(1);
    let wish = job::change::Wish { handler: &handler, payload, options: &options, id, ordinal };
    Ok(job::change::enqueue(&mut call.transaction, wish)?.into())
}

fn id_of(id: &Dynamic) -> Result<ImmutableString, Failure> {
    id.as_immutable_string_ref()
        .map(|id| id.clone())
        .or_else(|_| raise("bad_job", format!("a job is named by its id, a text, not {}", type_name(id))))
}
