//! Limits in scripts: how they are declared, their methods, and the decisions those return.

use std::sync::Arc;
use std::time::Duration;

use rhai::{
    Array, Dynamic, EvalAltResult, FuncRegistration, ImmutableString, Map as Fields, Module, NativeCallContext,
};

use crate::bucket::{self, Demand};
use crate::limit::{Cost, Decision, InvalidLimit, Key, Kind, Limit, Reason};
use crate::outcome::{Refusal, RefusalKind};
use crate::time::{format_duration_ms, parse_duration_ms};
use crate::transaction::{Fault, Transaction};
use crate::value::{Map, Value};

use super::super::call::with;
use super::super::convert::{self, type_name};
use super::super::raised::{Failure, Raised, raise};
use super::key::{any_key, text_key};

/// A limit as a value of scripts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LimitValue(pub(crate) Limit);

impl LimitValue {
    pub(crate) fn name(&self) -> &str {
        self.0.name()
    }

    pub(crate) fn describe(&self) -> String {
        self.0.describe()
    }
}

/// A decision as a value of scripts; shared, because scripts copy values freely.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct DecisionValue(Arc<Decision>);

impl DecisionValue {
    pub(in super::super) fn to_map(&self) -> Map {
        match self.0.to_value() {
            Value::Map(map) => map,
            _ => Map::new(),
        }
    }

    /// The refusal that a decision stands for.
    pub(in super::super) fn refusal(&self, kind: RefusalKind) -> Refusal {
        refusal_of(&self.0, kind)
    }
}

fn refusal_of(decision: &Decision, kind: RefusalKind) -> Refusal {
    // No wait helps where a cost never fits or a lease is over; and what was allowed has none.
    let wait = u64::try_from(decision.retry_after).ok().filter(|ms| *ms > 0);
    let names: Vec<&str> = decision.violated.iter().map(|violation| &*violation.name).collect();
    let which = if names.is_empty() { decision.name.to_string() } else { names.join(", ") };
    let message = match decision.reason {
        Reason::Never => format!("{which}: this can never be allowed"),
        Reason::Stale => format!("{which}: the lease is over"),
        _ => format!("{which}: try again in {}", format_duration_ms(decision.retry_after)),
    };
    Refusal {
        kind,
        code: "rate_limited".into(),
        message,
        retry_after: wait.map(Duration::from_millis),
        violated: decision.violated.clone(),
        data: Value::Null,
        asked: decision.asked.clone(),
    }
}

type Answer<T> = Result<T, Box<EvalAltResult>>;
type Operation = fn(&mut Transaction, &Limit, &Key, Cost) -> Result<Decision, Fault>;

/// The options that may be chained on a limit; which of them make sense on which kind the limit knows.
const OPTIONS: [&str; 9] =
    ["capacity", "max_reserved", "min_interval", "start", "block_for", "shadow", "durable", "shards", "hash_keys"];

pub(super) fn register(module: &mut Module) {
    module.set_custom_type::<LimitValue>("limit");
    module.set_custom_type::<DecisionValue>("decision");
    for kind in Kind::ALL {
        register_kind(module, kind);
    }
    for option in OPTIONS {
        module.set_native_fn(option, move |context: NativeCallContext, limit: &mut LimitValue| {
            declared(&context, limit.0.apply_option(option, &Value::Null))
        });
        module.set_native_fn(option, move |context: NativeCallContext, limit: &mut LimitValue, value: Dynamic| {
            let value = data(&context, &value)?;
            declared(&context, limit.0.apply_option(option, &value))
        });
    }
    register_spending(module, "take", bucket::take);
    register_spending(module, "peek", bucket::peek);
    register_spending(module, "reserve", bucket::reserve);
    register_quota(module);
    register_leases(module);
    module.set_native_fn("with", |context: NativeCallContext, limit: &mut LimitValue, changes: Fields| {
        let changes = convert::from_map(&changes)
            .map_err(|why| Raised::new("bad_limit", why).into_error(context.call_position()))?;
        declared(&context, limit.0.with(&changes))
    });
    register_enforce(module);
    register_keeping(module);
    register_several(module);
    register_getters(module);
}

/// `fixed_window(name, rate, period)` and the like.
fn register_kind(module: &mut Module, kind: Kind) {
    module.set_native_fn(
        kind.name(),
        move |context: NativeCallContext, name: &str, rate: i64, period: i64| -> Answer<LimitValue> {
            declared(&context, Limit::of_ms(kind, name, rate, period))
        },
    );
    module.set_native_fn(
        kind.name(),
        move |context: NativeCallContext, name: Dynamic, rate: Dynamic, period: Dynamic| -> Answer<LimitValue> {
            let Ok(text) = name.as_immutable_string_ref() else {
                let message = format!("the name of a limit is a string, not {}", type_name(&name));
                return Err(Raised::new("bad_limit", message).into_error(context.call_position()));
            };
            let (rate, period) = (data(&context, &rate)?, data(&context, &period)?);
            declared(&context, Limit::declare(kind, &text, &rate, &period))
        },
    );
}

/// `calendar_quota(name, rate, unit, zone)`; without its zone it is declared like the others, and refused by name.
fn register_quota(module: &mut Module) {
    module.set_native_fn(
        Kind::CalendarQuota.name(),
        |context: NativeCallContext, name: &str, rate: Dynamic, unit: Dynamic, zone: Dynamic| -> Answer<LimitValue> {
            let (rate, unit, zone) = (data(&context, &rate)?, data(&context, &unit)?, data(&context, &zone)?);
            declared(&context, Limit::declare_quota(name, &rate, &unit, &zone))
        },
    );
}

/// The methods of a concurrency limit, whose tokens are given back by the lease that was handed out.
fn register_leases(module: &mut Module) {
    type Leasing = fn(&mut Transaction, &Limit, &Key, i64) -> Result<Decision, Fault>;
    register_spending(module, "acquire", bucket::lease::acquire);
    for (name, operation) in
        [("renew", bucket::lease::renew as Leasing), ("release", bucket::lease::release as Leasing)]
    {
        module.set_native_fn(
            name,
            move |context: NativeCallContext,
                  limit: &mut LimitValue,
                  key: Dynamic,
                  lease: Dynamic|
                  -> Answer<DecisionValue> {
                with(&context, |call| {
                    leased(&limit.0, name)?;
                    let key = any_key(&key)?;
                    let Ok(lease) = lease.as_int() else {
                        let message = format!("a lease is the `lease` of a decision, not {}", type_name(&lease));
                        return raise("bad_lease", message);
                    };
                    Ok(decision(operation(&mut call.transaction, &limit.0, &key, lease)?))
                })
            },
        );
    }
}

/// Refuses a method of leases on a limit that gives none out.
fn leased(limit: &Limit, method: &str) -> Result<(), Failure> {
    match limit.kind() {
        Kind::Concurrency => Ok(()),
        kind => {
            let message = format!("`{method}` is for a concurrency limit, and `{}` is a {kind}", limit.name());
            raise("bad_limit", message)
        }
    }
}

fn declared(context: &NativeCallContext, limit: Result<Limit, InvalidLimit>) -> Answer<LimitValue> {
    limit.map(LimitValue).map_err(|invalid| bad_limit(invalid).into_error(context.call_position()))
}

/// The error about settings that cannot be, with what is wrong in fields of its own.
pub(super) fn bad_limit(invalid: InvalidLimit) -> Raised {
    let mut raised = Raised::new("bad_limit", invalid.to_string());
    raised.data = Map::from([
        ("limit".to_owned(), Value::Text(invalid.limit)),
        ("field".to_owned(), Value::Text(invalid.field)),
        ("value".to_owned(), Value::Text(invalid.value)),
    ]);
    raised
}

fn data(context: &NativeCallContext, value: &Dynamic) -> Answer<Value> {
    convert::from_dynamic(value).map_err(|why| Raised::new("bad_value", why).into_error(context.call_position()))
}

/// A method that takes a key, or none, and a cost, or one token.
fn register_spending(module: &mut Module, name: &'static str, operation: Operation) {
    let run = move |context: &NativeCallContext,
                    limit: &LimitValue,
                    key: Result<Key, Failure>,
                    cost: Result<Cost, Failure>| {
        with(context, |call| {
            if name == "acquire" {
                leased(&limit.0, name)?;
            }
            Ok(decision(operation(&mut call.transaction, &limit.0, &key?, cost?)?))
        })
    };
    module.set_native_fn(name, move |context: NativeCallContext, limit: &mut LimitValue| {
        run(&context, limit, Ok(Key::global()), Ok(Cost::ONE))
    });
    module.set_native_fn(name, move |context: NativeCallContext, limit: &mut LimitValue, key: &str| {
        run(&context, limit, text_key(key), Ok(Cost::ONE))
    });
    module.set_native_fn(name, move |context: NativeCallContext, limit: &mut LimitValue, key: i64| {
        run(&context, limit, Ok(Key::from(key)), Ok(Cost::ONE))
    });
    module.set_native_fn(name, move |context: NativeCallContext, limit: &mut LimitValue, key: Dynamic| {
        run(&context, limit, any_key(&key), Ok(Cost::ONE))
    });
    module.set_native_fn(name, move |context: NativeCallContext, limit: &mut LimitValue, key: &str, cost: i64| {
        run(&context, limit, text_key(key), int_cost(cost))
    });
    module.set_native_fn(
        name,
        move |context: NativeCallContext, limit: &mut LimitValue, key: Dynamic, cost: Dynamic| {
            run(&context, limit, any_key(&key), any_cost(&cost))
        },
    );
}

/// `enforce`: take, and refuse the whole call when it is not allowed.
fn register_enforce(module: &mut Module) {
    fn enforce(
        context: &NativeCallContext,
        limit: &LimitValue,
        key: Result<Key, Failure>,
        cost: Result<Cost, Failure>,
    ) -> Answer<DecisionValue> {
        with(context, |call| enforced(bucket::enforce(&mut call.transaction, &limit.0, &key?, cost?)?))
    }
    module.set_native_fn("enforce", |context: NativeCallContext, limit: &mut LimitValue| {
        enforce(&context, limit, Ok(Key::global()), Ok(Cost::ONE))
    });
    module.set_native_fn("enforce", |context: NativeCallContext, limit: &mut LimitValue, key: &str| {
        enforce(&context, limit, text_key(key), Ok(Cost::ONE))
    });
    module.set_native_fn("enforce", |context: NativeCallContext, limit: &mut LimitValue, key: Dynamic| {
        enforce(&context, limit, any_key(&key), Ok(Cost::ONE))
    });
    module.set_native_fn(
        "enforce",
        |context: NativeCallContext, limit: &mut LimitValue, key: Dynamic, cost: Dynamic| {
            enforce(&context, limit, any_key(&key), any_cost(&cost))
        },
    );
}

fn enforced(decision: Decision) -> Result<DecisionValue, Failure> {
    match decision.allowed {
        true => Ok(DecisionValue(Arc::new(decision))),
        false => Err(Failure::refused(refusal_of(&decision, RefusalKind::Denied))),
    }
}

fn decision(decision: Decision) -> DecisionValue {
    DecisionValue(Arc::new(decision))
}

/// The methods that change a bucket without asking, and those that only say what the limit is.
fn register_keeping(module: &mut Module) {
    for (name, operation) in [("refund", bucket::refund as Operation), ("charge", bucket::charge as Operation)] {
        module.set_native_fn(
            name,
            move |context: NativeCallContext,
                  limit: &mut LimitValue,
                  key: Dynamic,
                  tokens: Dynamic|
                  -> Answer<DecisionValue> {
                with(&context, |call| {
                    let (key, tokens) = (any_key(&key)?, any_cost(&tokens)?);
                    Ok(decision(operation(&mut call.transaction, &limit.0, &key, tokens)?))
                })
            },
        );
    }
    module.set_native_fn(
        "block",
        |context: NativeCallContext, limit: &mut LimitValue, key: Dynamic, span: Dynamic| -> Answer<DecisionValue> {
            with(&context, |call| {
                let (key, span) = (any_key(&key)?, span_ms(&span)?);
                Ok(decision(bucket::block(&mut call.transaction, &limit.0, &key, span)?))
            })
        },
    );
    module.set_native_fn(
        "unblock",
        |context: NativeCallContext, limit: &mut LimitValue, key: Dynamic| -> Answer<DecisionValue> {
            with(&context, |call| Ok(decision(bucket::unblock(&mut call.transaction, &limit.0, &any_key(&key)?)?)))
        },
    );
    module.set_native_fn("reset", |context: NativeCallContext, limit: &mut LimitValue, key: Dynamic| -> Answer<()> {
        with(&context, |call| Ok(bucket::reset(&mut call.transaction, &limit.0, &any_key(&key)?)?))
    });
    module.set_native_fn("reset", |context: NativeCallContext, limit: &mut LimitValue| -> Answer<()> {
        with(&context, |call| Ok(bucket::reset(&mut call.transaction, &limit.0, &Key::global())?))
    });
    module
        .set_native_fn("describe", |limit: &mut LimitValue| -> Answer<ImmutableString> { Ok(limit.describe().into()) });
    module.set_native_fn("name", |limit: &mut LimitValue| -> Answer<ImmutableString> { Ok(limit.name().into()) });
    module.set_getter_fn("name", |limit: &mut LimitValue| -> Answer<ImmutableString> { Ok(limit.name().into()) });
    for name in ["to_string", "to_debug"] {
        module.set_native_fn(name, |limit: &mut LimitValue| -> Answer<ImmutableString> {
            Ok(format!("{}: {}", limit.name(), limit.describe()).into())
        });
    }
}

/// `take_all`, `peek_all`, `enforce_all`.
fn register_several(module: &mut Module) {
    module.set_native_fn("take_all", |context: NativeCallContext, list: Array| -> Answer<DecisionValue> {
        with(&context, |call| Ok(decision(bucket::take_all(&mut call.transaction, &demands(&list)?)?)))
    });
    module.set_native_fn("peek_all", |context: NativeCallContext, list: Array| -> Answer<DecisionValue> {
        with(&context, |call| Ok(decision(bucket::peek_all(&mut call.transaction, &demands(&list)?)?)))
    });
    module.set_native_fn("enforce_all", |context: NativeCallContext, list: Array| -> Answer<DecisionValue> {
        with(&context, |call| enforced(bucket::enforce_all(&mut call.transaction, &demands(&list)?)?))
    });
}

/// Takes in one list; each is a read and a write, which the documents' budgets do not count.
const MOST_DEMANDS: usize = 64;

fn demands(list: &Array) -> Result<Vec<Demand>, Failure> {
    if list.is_empty() {
        return raise("bad_list", "the list of limits is empty: name at least one `[LIMIT, key]`");
    }
    if list.len() > MOST_DEMANDS {
        return raise("bad_list", format!("the list names {} limits: at most {MOST_DEMANDS}", list.len()));
    }
    list.iter()
        .map(|item| {
            let wrong = || Raised::new("bad_list", "each item of the list is `[LIMIT, key]` or `[LIMIT, key, cost]`");
            if let Some(limit) = item.read_lock::<LimitValue>() {
                return Ok(Demand { limit: limit.0.clone(), key: Key::global(), cost: Cost::ONE });
            }
            let parts = item.as_array_ref().map_err(|_| wrong())?;
            // The limit first: of a key in its place the message would speak of a bad key.
            let (limit, rest) = parts.split_first().ok_or_else(wrong)?;
            let limit = limit.read_lock::<LimitValue>().ok_or_else(wrong)?.0.clone();
            let (key, cost) = match rest {
                [] => (Key::global(), Cost::ONE),
                [key] => (any_key(key)?, Cost::ONE),
                [key, cost] => (any_key(key)?, any_cost(cost)?),
                _ => return Err(wrong().into()),
            };
            Ok(Demand { limit, key, cost })
        })
        .collect()
}

/// The fields of a decision, one getter each: no map is built to read one of them.
fn register_getters(module: &mut Module) {
    macro_rules! getter {
        ($name:literal, $kind:ty, $read:expr) => {
            FuncRegistration::new_getter($name).set_into_module(module, |decision: &mut DecisionValue| -> $kind {
                let read: fn(&Decision) -> $kind = $read;
                read(&decision.0)
            });
        };
    }
    getter!("allowed", bool, |d| d.allowed);
    getter!("limit", i64, |d| d.limit);
    getter!("remaining", i64, |d| d.remaining);
    getter!("used", i64, |d| d.used);
    getter!("retry_after", i64, |d| d.retry_after);
    getter!("reset_at", i64, |d| d.reset_at.as_millis());
    getter!("delay", i64, |d| d.delay);
    getter!("reason", ImmutableString, |d| d.reason.as_str().into());
    getter!("lease", Dynamic, |d| d.lease().map_or(Dynamic::UNIT, Dynamic::from_int));
    getter!("violated", Dynamic, |d| match d.to_value() {
        Value::Map(mut map) => convert::to_dynamic(map.remove("violated").unwrap_or_default()),
        _ => Dynamic::UNIT,
    });
    getter!("would_refuse", Dynamic, |d| Dynamic::from_array(
        d.would_refuse.iter().map(|name| Dynamic::from(ImmutableString::from(&**name))).collect()
    ));
    module.set_native_fn("to_map", |decision: &mut DecisionValue| -> Answer<rhai::Map> {
        Ok(convert::to_map(decision.to_map()))
    });
    for name in ["to_string", "to_debug"] {
        module.set_native_fn(name, |decision: &mut DecisionValue| -> Answer<ImmutableString> {
            Ok(Value::Map(decision.to_map()).to_json().into())
        });
    }
}

fn int_cost(tokens: i64) -> Result<Cost, Failure> {
    Cost::new(tokens).map_err(|invalid| Failure::from(Raised::new("bad_cost", invalid.to_string())))
}

fn any_cost(value: &Dynamic) -> Result<Cost, Failure> {
    if let Ok(tokens) = value.as_int() {
        return int_cost(tokens);
    }
    // NaN is no value at all, and its message should still speak of the cost.
    let value = convert::from_dynamic(value).map_err(|why| Raised::new("bad_cost", format!("cost: {why}")))?;
    Cost::from_value(&value).map_err(|invalid| Failure::from(Raised::new("bad_cost", invalid.to_string())))
}

/// A span as ms or as text with a unit.
pub(super) fn span_ms(value: &Dynamic) -> Result<i64, Failure> {
    let ms = match (value.as_int(), value.as_immutable_string_ref()) {
        (Ok(ms), _) => ms,
        (_, Ok(text)) => parse_duration_ms(&text).map_err(|why| Raised::new("bad_duration", why.to_string()))?,
        _ => return raise("bad_duration", format!("a span is ms or text such as \"10m\", not {}", type_name(value))),
    };
    if ms < 1 { raise("bad_duration", format!("a span of {ms} ms is none: at least 1 ms")) } else { Ok(ms) }
}
