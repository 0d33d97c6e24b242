//! Natives: functions that the host adds to the language.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::value::Value;

use super::raised::Raised;

/// The body of a native: plain values in, a value or an error text out.
pub(crate) type NativeBody = Arc<dyn Fn(&[Value]) -> Result<Value, String> + Send + Sync>;

/// A function that the host adds.
#[derive(Clone)]
pub(super) struct Native {
    pub(super) name: String,
    pub(super) arity: usize,
    body: NativeBody,
}

/// The functions that the host adds, by name and number of parameters.
#[derive(Clone, Default)]
pub(crate) struct Natives {
    pub(super) list: Vec<Native>,
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
        if !rhai::is_valid_function_name(name) {
            return Err(format!("`{name}` cannot be the name of a function: use letters, digits and `_`"));
        }
        if arity > MOST_PARAMETERS {
            return Err(format!("`{name}` has {arity} parameters: the most is {MOST_PARAMETERS}"));
        }
        if self.list.iter().any(|native| native.name == name && native.arity == arity) {
            return Err(format!("`{name}` with {arity} parameters is registered twice"));
        }
        self.list.push(Native { name: name.to_owned(), arity, body: Arc::new(body) });
        Ok(())
    }
}

impl Native {
    /// Runs the body. A panic in it is an error of this call and of nothing else.
    pub(super) fn call(&self, arguments: &[Value]) -> Result<Value, Raised> {
        match catch_unwind(AssertUnwindSafe(|| (self.body)(arguments))) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(message)) => Err(Raised::new("host", message)),
            Err(_) => Err(Raised::new("panic", format!("the host function `{}` panicked", self.name))),
        }
    }
}
