//! Tests of cancelling: a call that was cancelled in its middle ends there, and has written nothing.

use std::time::Duration;

use crate::error::Error;
use crate::outcome::Outcome;
use crate::script::{Arguments, Budget, CancelHandle};
use crate::value::Value;

use super::{CallOptions, Engine};

/// An engine with a procedure `test` of this body, in which `cancel()` cancels the handle; no budget ends its calls.
fn engine(body: &str, cancel: &CancelHandle) -> Engine {
    let cancel = cancel.clone();
    let patient = Budget { time: Duration::from_secs(3600), operations: u64::MAX, ..Budget::default() };
    Engine::builder()
        .memory()
        .budget(patient)
        .register_fn("cancel", 0, move |_| {
            cancel.cancel();
            Ok(Value::Null)
        })
        .source(
            "test.rhai",
            &format!("fn test() {{ insert(\"t\", #{{}}); {body} }} fn all() {{ count(\"t\", #{{}}) }}"),
        )
        .open()
        .unwrap()
}

fn call(engine: &Engine, name: &str, cancel: &CancelHandle) -> Result<Outcome<Value>, Error> {
    engine.call_values(name, Arguments::default(), &CallOptions::new().cancel(cancel.clone()))
}

#[test]
fn no_script_sees_past_a_cancelled_call() {
    for body in [
        "cancel(); loop { }",
        "cancel(); loop { try { loop { } } catch { } }",
        "loop { attempt(|| { cancel(); loop { } }); }",
        "loop { try { attempt(|| { cancel(); loop { } }) } catch { } }",
        "loop { [1, 2].map(|x| { cancel(); loop { } }); }",
        "loop { [1, 2].sort(|x, y| { cancel(); loop { } }); }",
        "loop { try { [1, 2].filter(|x| { cancel(); loop { } }) } catch { } }",
        "loop { [1, 2].for_each(|| { cancel(); loop { } }); insert(\"t\", #{}); }",
    ] {
        let cancel = CancelHandle::new();
        let engine = engine(body, &cancel);
        let error = call(&engine, "test", &cancel).unwrap_err();
        let Error::Cancelled(script) = &error else { panic!("{body}: {error}") };
        assert_eq!((error.code(), error.is_retryable()), ("cancelled", false), "{body}");
        assert_eq!(script.message, "the call was cancelled: nothing was written", "{body}");
        assert_eq!(script.position.as_ref().map(|position| &*position.file), Some("test.rhai"), "{body}");
        cancel.reset();
        assert_eq!(call(&engine, "all", &cancel).unwrap(), Outcome::Returned(Value::Int(0)), "{body}");
    }
}

#[test]
fn a_cancelled_handle_lets_no_call_begin_until_it_is_reset() {
    let cancel = CancelHandle::new();
    let engine = engine("1", &cancel);
    cancel.cancel();
    assert_eq!(call(&engine, "test", &cancel).unwrap_err().code(), "cancelled");
    // Others are not concerned.
    assert_eq!(call(&engine, "all", &CancelHandle::new()).unwrap(), Outcome::Returned(Value::Int(0)));
    cancel.reset();
    assert_eq!(call(&engine, "test", &cancel).unwrap(), Outcome::Returned(Value::Int(1)));
}

#[test]
fn a_session_lives_on_with_its_variables_and_its_transaction() {
    let cancel = CancelHandle::new();
    let engine = engine("1", &cancel);
    let mut session = engine.session();
    session.set_cancel(cancel.clone());
    session.begin().unwrap();
    assert!(session.eval("let n = 2; insert(\"t\", #{})").is_ok());
    assert_eq!(session.eval("n = 3; insert(\"t\", #{}); cancel(); loop { }").unwrap_err().code(), "cancelled");
    assert_eq!(session.eval("n").unwrap_err().code(), "cancelled", "until it is reset");
    cancel.reset();
    assert!(session.in_transaction());
    assert_eq!(session.eval("n").unwrap(), Outcome::Returned(Value::Int(2)));
    session.commit().unwrap();
    assert_eq!(session.eval("all()").unwrap(), Outcome::Returned(Value::Int(1)));
}
