//! Natives: functions that the host adds to the language.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;
use rhai::{Dynamic, FnPtr, NativeCallContext};

use crate::value::Value;

use super::raised::Raised;
use super::{convert, failure};

/// The body of a native: plain values in, a value or an error text out.
pub(crate) type NativeBody = Arc<dyn Fn(&[Value]) -> Result<Value, String> + Send + Sync>;

/// Calls a closure that the script left under a name; none when it left none.
pub(crate) type CallClosure<'a> = &'a mut dyn FnMut(&str, &[Value]) -> Option<Result<Value, String>>;

/// The body of a native that calls closures of the script.
pub(crate) type CallingBody = Arc<dyn Fn(&[Value], CallClosure<'_>) -> Result<Value, String> + Send + Sync>;

/// A function that the host adds.
#[derive(Clone)]
pub(super) struct Native {
    pub(super) name: String,
    pub(super) arity: usize,
    body: Body,
}

#[derive(Clone)]
enum Body {
    Plain(NativeBody),
    /// Takes a name and a closure, and keeps the closure under the name.
    Keeping(NativeBody, Closures),
    Calling(CallingBody, Closures),
}

/// Closures that a script left, by name.
type Closures = Arc<Mutex<BTreeMap<String, FnPtr>>>;

/// The functions that the host adds, by name and number of parameters.
#[derive(Clone, Default)]
pub(crate) struct Natives {
    pub(super) list: Vec<Native>,
    closures: Closures,
}

/// Parameters that a native may have; the interpreter passes more only by another way.
pub(crate) const MOST_PARAMETERS: usize = 16;

impl Natives {
    /// None.
    pub(crate) fn new() -> Natives {
        Natives::default()
    }

    /// Adds `name` with `arity` parameters; the same name may be added with other numbers of them.
    ///
    /// Errors: a name that is no identifier, too many parameters, the same name and number twice.
    pub(crate) fn register(
        &mut self,
        name: &str,
        arity: usize,
        body: impl Fn(&[Value]) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Result<(), String> {
        self.add(name, arity, Body::Plain(Arc::new(body)))
    }

    /// Adds `name`, with a name and a closure as parameters: the closure is kept under that name, and `body` hears of it.
    ///
    /// Errors: as [`Natives::register`].
    pub(crate) fn register_keeping(
        &mut self,
        name: &str,
        body: impl Fn(&[Value]) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Result<(), String> {
        let closures = self.closures.clone();
        self.add(name, 2, Body::Keeping(Arc::new(body), closures))
    }

    /// Adds `name` with `arity` parameters, whose body calls the closures that were kept.
    ///
    /// Errors: as [`Natives::register`].
    pub(crate) fn register_calling(
        &mut self,
        name: &str,
        arity: usize,
        body: impl Fn(&[Value], CallClosure<'_>) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Result<(), String> {
        let closures = self.closures.clone();
        self.add(name, arity, Body::Calling(Arc::new(body), closures))
    }

    fn add(&mut self, name: &str, arity: usize, body: Body) -> Result<(), String> {
        if !rhai::is_valid_function_name(name) {
            return Err(format!("`{name}` cannot be the name of a function: use letters, digits and `_`"));
        }
        if arity > MOST_PARAMETERS {
            return Err(format!("`{name}` has {arity} parameters: the most is {MOST_PARAMETERS}"));
        }
        if self.list.iter().any(|native| native.name == name && native.arity == arity) {
            return Err(format!("`{name}` with {arity} parameters is registered twice"));
        }
        self.list.push(Native { name: name.to_owned(), arity, body });
        Ok(())
    }
}

impl Native {
    /// Runs the body on what a script passed. A panic in it is an error of this call and of nothing else.
    pub(super) fn call(&self, context: &NativeCallContext, arguments: &[&mut Dynamic]) -> Result<Value, Raised> {
        let values = |given: &[&mut Dynamic]| -> Result<Vec<Value>, Raised> {
            let values: Result<Vec<Value>, String> = given.iter().map(|one| convert::from_dynamic(one)).collect();
            values.map_err(|why| Raised::new("bad_value", why))
        };
        match &self.body {
            Body::Plain(body) => {
                let values = values(arguments)?;
                self.contained(|| body(&values))
            }
            Body::Keeping(body, closures) => {
                let (names, closure) = (values(&arguments[..1])?, &arguments[1]);
                let Some(closure) = closure.read_lock::<FnPtr>().map(|closure| closure.clone()) else {
                    let got = convert::type_name(closure);
                    return Err(Raised::new("bad_value", format!("`{}` takes a closure, not {got}", self.name)));
                };
                let Some(Value::Text(name)) = names.first() else {
                    return Err(Raised::new("bad_value", format!("`{}` takes a name first, a text", self.name)));
                };
                closures.lock().insert(name.clone(), closure);
                self.contained(|| body(&names))
            }
            Body::Calling(body, closures) => {
                let values = values(arguments)?;
                let mut call = |name: &str, given: &[Value]| {
                    let closure = closures.lock().get(name).cloned()?;
                    let given: Vec<Dynamic> = given.iter().cloned().map(convert::to_dynamic).collect();
                    let result = closure.call_within_context::<Dynamic>(context, given);
                    Some(match result {
                        Ok(value) => convert::from_dynamic(&value),
                        Err(error) => Err(failure::innermost(*error).message),
                    })
                };
                self.contained(|| body(&values, &mut call))
            }
        }
    }

    fn contained(&self, run: impl FnOnce() -> Result<Value, String>) -> Result<Value, Raised> {
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(message)) => Err(Raised::new("host", message)),
            Err(_) => Err(Raised::new("panic", format!("the host function `{}` panicked", self.name))),
        }
    }
}
