//! Rulings in scripts: the methods of a limit with which an operator decides about one key for a while.

use rhai::{Dynamic, EvalAltResult, Map as Fields, Module, NativeCallContext};

use crate::bucket::ruling::{self, InvalidOverride};
use crate::limit::{Decided, Override};

use super::super::call::with;
use super::super::convert;
use super::super::raised::{Failure, Raised};
use super::key::any_key;
use super::limits::{LimitValue, bad_limit, span_ms};

type Answer = Result<(), Box<EvalAltResult>>;

pub(super) fn register(module: &mut Module) {
    module.set_native_fn(
        "set_override",
        |context: NativeCallContext, limit: &mut LimitValue, key: Dynamic, changes: Fields, span: Dynamic| -> Answer {
            let changes = convert::from_map(&changes).map_err(|why| Raised::new("bad_limit", why).into());
            rule(&context, limit, &key, changes.map(Decided::Settings), &span)
        },
    );
    for (name, decided) in [("allow", Decided::Allow), ("ban", Decided::Ban)] {
        module.set_native_fn(
            name,
            move |context: NativeCallContext, limit: &mut LimitValue, key: Dynamic, span: Dynamic| -> Answer {
                rule(&context, limit, &key, Ok(decided.clone()), &span)
            },
        );
    }
    module.set_native_fn("revoke", |context: NativeCallContext, limit: &mut LimitValue, key: Dynamic| -> Answer {
        with(&context, |call| Ok(ruling::revoke(&mut call.transaction, &limit.0, &any_key(&key)?)?))
    });
}

/// Stores what was decided about `key`, for `span` from the instant of the call on.
fn rule(
    context: &NativeCallContext,
    limit: &LimitValue,
    key: &Dynamic,
    decided: Result<Decided, Failure>,
    span: &Dynamic,
) -> Answer {
    with(context, |call| {
        let (key, decided, span) = (any_key(key)?, decided?, span_ms(span)?);
        let now = call.transaction.now();
        let ruling = Override::new(&limit.0, decided, now.saturating_add_millis(span), now).map_err(raised)?;
        Ok(ruling::rule(&mut call.transaction, &limit.0, &key, &ruling)?)
    })
}

fn raised(invalid: InvalidOverride) -> Raised {
    let code = match invalid {
        InvalidOverride::Limit(invalid) => return bad_limit(invalid),
        InvalidOverride::Empty(_) => "bad_limit",
        InvalidOverride::Past { .. } | InvalidOverride::Far(_) => "bad_duration",
    };
    Raised::new(code, invalid.to_string())
}
