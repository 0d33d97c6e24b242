//! Collections in scripts: declared at file level with their indexes and expiry.

use rhai::{Array, Dynamic, EvalAltResult, ImmutableString, Module, NativeCallContext};

use crate::document::collection::{CollectionSpec, IndexSpec, Ttl};
use crate::time::parse_duration_ms;

use super::super::call;
use super::super::convert::type_name;
use super::super::raised::Raised;

/// A collection being declared, as a value of scripts.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct CollectionValue(pub(in super::super) CollectionSpec);

type Answer<T> = Result<T, Box<EvalAltResult>>;

pub(super) fn register(module: &mut Module) {
    module.set_custom_type::<CollectionValue>("collection");
    module.set_native_fn("collection", |context: NativeCallContext, name: &str| -> Answer<CollectionValue> {
        at_load(&context)?;
        checked(&context, CollectionSpec::new(name))
    });
    for (name, unique) in [("index", false), ("unique", true)] {
        module.set_native_fn(
            name,
            move |context: NativeCallContext,
                  collection: &mut CollectionValue,
                  fields: Dynamic|
                  -> Answer<CollectionValue> {
                with_index(&context, collection.0.clone(), &fields, unique)
            },
        );
    }
    module.set_native_fn(
        "ttl",
        |context: NativeCallContext, collection: &mut CollectionValue, field: &str| -> Answer<CollectionValue> {
            with_ttl(&context, collection.0.clone(), field, None)
        },
    );
    module.set_native_fn(
        "ttl_after",
        |context: NativeCallContext,
         collection: &mut CollectionValue,
         field: &str,
         span: Dynamic|
         -> Answer<CollectionValue> {
            let after = span_ms(&context, &span)?;
            with_ttl(&context, collection.0.clone(), field, Some(after))
        },
    );
    module.set_native_fn("buffered", |collection: &mut CollectionValue| -> Answer<CollectionValue> {
        Ok(CollectionValue(CollectionSpec { buffered: true, ..collection.0.clone() }))
    });
    for (name, unique) in [("create_index", false), ("create_unique_index", true)] {
        module.set_native_fn(
            name,
            move |context: NativeCallContext, collection: &str, fields: Dynamic| -> Answer<CollectionValue> {
                at_load(&context)?;
                with_index(&context, CollectionSpec::new(collection), &fields, unique)
            },
        );
    }
    module.set_native_fn(
        "create_ttl_index",
        |context: NativeCallContext, collection: &str, field: &str| -> Answer<CollectionValue> {
            at_load(&context)?;
            with_ttl(&context, CollectionSpec::new(collection), field, None)
        },
    );
}

/// Declarations stand at file level: inside a call they would come too late for the calls before it.
pub(super) fn at_load(context: &NativeCallContext) -> Answer<()> {
    if call::loading() {
        return Ok(());
    }
    let message = format!("`{}` is a declaration: write it at file level, outside of functions", context.fn_name());
    Err(Raised::new("declaration", message).into_error(context.call_position()))
}

fn checked(context: &NativeCallContext, spec: CollectionSpec) -> Answer<CollectionValue> {
    match spec.check() {
        Ok(()) => Ok(CollectionValue(spec)),
        Err(error) => Err(Raised::new("bad_collection", error.message).into_error(context.call_position())),
    }
}

fn with_index(
    context: &NativeCallContext,
    mut spec: CollectionSpec,
    fields: &Dynamic,
    unique: bool,
) -> Answer<CollectionValue> {
    let wrong = || {
        let message = format!("the fields of an index are a string or an array of strings, not {}", type_name(fields));
        Raised::new("bad_collection", message).into_error(context.call_position())
    };
    let fields: Vec<String> = if let Ok(field) = fields.as_immutable_string_ref() {
        vec![field.to_string()]
    } else {
        let items: Array = fields.as_array_ref().map_err(|_| wrong())?.clone();
        items
            .iter()
            .map(|item| {
                item.as_immutable_string_ref().map(|field| ImmutableString::to_string(&field)).map_err(|_| wrong())
            })
            .collect::<Result<_, _>>()?
    };
    spec.indexes.push(IndexSpec::new(fields, unique));
    checked(context, spec)
}

fn with_ttl(
    context: &NativeCallContext,
    mut spec: CollectionSpec,
    field: &str,
    after_ms: Option<i64>,
) -> Answer<CollectionValue> {
    if let Some(other) = &spec.ttl {
        let message = format!("`{}` expires by `{}` already", spec.name, other.field);
        return Err(Raised::new("bad_collection", message).into_error(context.call_position()));
    }
    spec.ttl = Some(Ttl { field: field.to_owned(), after_ms });
    checked(context, spec)
}

fn span_ms(context: &NativeCallContext, span: &Dynamic) -> Answer<i64> {
    let wrong = |message: String| Raised::new("bad_collection", message).into_error(context.call_position());
    let ms = match (span.as_int(), span.as_immutable_string_ref()) {
        (Ok(ms), _) => ms,
        (_, Ok(text)) => parse_duration_ms(&text).map_err(|why| wrong(why.to_string()))?,
        _ => return Err(wrong(format!("a span is ms or text such as \"14d\", not {}", type_name(span)))),
    };
    if ms < 0 { Err(wrong(format!("a span of {ms} ms is negative"))) } else { Ok(ms) }
}

/// Two declarations of one collection made one. Errors: what they disagree on.
pub(in super::super) fn merged(mut all: CollectionSpec, one: &CollectionSpec) -> Result<CollectionSpec, String> {
    for index in &one.indexes {
        match all.indexes.iter().find(|other| other.name == index.name) {
            None => all.indexes.push(index.clone()),
            Some(other) if other == index => {}
            Some(_) => {
                return Err(format!(
                    "index `{}` of `{}` is declared twice with different settings",
                    index.name, one.name
                ));
            }
        }
    }
    match (&all.ttl, &one.ttl) {
        (Some(a), Some(b)) if a != b => {
            return Err(format!("`{}` is declared to expire by `{}` and by `{}`", one.name, a.field, b.field));
        }
        (None, Some(_)) => all.ttl = one.ttl.clone(),
        _ => {}
    }
    all.buffered |= one.buffered;
    Ok(all)
}
