//! The sandbox: the interpreter with nothing in it but the language, our host functions and explicit bounds.

use std::any::TypeId;
use std::collections::BTreeSet;
use std::sync::OnceLock;

use rhai::module_resolvers::DummyModuleResolver;
use rhai::packages::{
    ArithmeticPackage, BasicArrayPackage, BasicBlobPackage, BasicFnPackage, BasicIteratorPackage, BasicMapPackage,
    BasicMathPackage, BasicStringPackage, BitFieldPackage, LogicPackage, MoreStringPackage, Package,
};
use rhai::{Dynamic, Engine, Module, NativeCallContext, OptimizationLevel, Shared};

use super::budget::{Budget, MOST_DEPTH, WHOLE_TEXT, WHOLE_VALUE};
use super::natives::Natives;
use super::{call, compare, convert, host};

/// Nesting of expressions in a file; deeper ones would overflow the stack of a 2 MiB thread.
const EXPRESSION_DEPTH: usize = 32;

/// A fresh interpreter. Modules are shared between all of them; only natives are registered anew.
pub(super) fn engine(natives: &Natives, budget: &Budget) -> Engine {
    let mut engine = Engine::new_raw();
    engine.set_module_resolver(DummyModuleResolver::new());
    for module in modules() {
        engine.register_global_module(module.clone());
    }
    for native in &natives.list {
        let native = native.clone();
        let types = vec![TypeId::of::<Dynamic>(); native.arity];
        engine.register_raw_fn(
            native.name.clone(),
            &types,
            move |context: NativeCallContext, arguments: &mut [&mut Dynamic]| {
                let position = context.call_position();
                let value = native.call(&context, arguments).map_err(|error| error.into_error(position))?;
                Ok(convert::to_dynamic(value))
            },
        );
    }

    engine.set_optimization_level(OptimizationLevel::None);
    engine.set_strict_variables(true);
    engine.set_fail_on_invalid_map_property(true);
    // Fast for arithmetic; comparisons are operators of ours, see `compare`.
    engine.set_fast_operators(true);
    for (_, ours, _, precedence) in compare::OPERATORS {
        if let Err(why) = engine.register_custom_operator(ours, precedence) {
            // Only a spelling that the language reserves is refused, and ours are fixed.
            unreachable!("{why}");
        }
    }
    engine.set_max_strings_interned(0);
    engine.disable_symbol("eval");

    engine.set_max_modules(0);
    engine.set_max_functions(10_000);
    engine.set_max_variables(256);
    engine.set_max_call_levels(budget.depth.min(MOST_DEPTH));
    engine.set_max_expr_depths(EXPRESSION_DEPTH, EXPRESSION_DEPTH);
    // Counted by `progress`, where each call brings its own budget.
    engine.set_max_operations(0);
    engine.set_max_string_size(budget.text_bytes.saturating_mul(WHOLE_TEXT));
    engine.set_max_array_size(budget.array_items.saturating_mul(WHOLE_VALUE));
    engine.set_max_map_size(budget.map_items.saturating_mul(WHOLE_VALUE));

    engine.on_progress(call::progress);
    engine.on_print(call::print);
    engine.on_debug(|text, _, _| call::print(text));
    engine
}

/// The names that scripts get from us and not from the language: functions, methods, and fields of decisions.
///
/// Read off what is registered, so that no list can fall behind.
pub(super) fn host_names() -> BTreeSet<String> {
    let ours = modules().last().into_iter().flat_map(|ours| ours.gen_fn_signatures_with_mapper(Into::into));
    ours.filter_map(|signature| {
        let name = signature.split('(').next().unwrap_or_default();
        let name = name.strip_prefix("get$").unwrap_or(name);
        rhai::is_valid_identifier(name).then(|| name.to_owned())
    })
    .collect()
}

/// The language's own functions and ours, which come last; of two with one signature the later module's wins.
fn modules() -> &'static [Shared<Module>] {
    static MODULES: OnceLock<Vec<Shared<Module>>> = OnceLock::new();
    MODULES.get_or_init(|| {
        let mut modules: Vec<Shared<Module>> = vec![
            ArithmeticPackage::new().as_shared_module(),
            LogicPackage::new().as_shared_module(),
            BasicStringPackage::new().as_shared_module(),
            MoreStringPackage::new().as_shared_module(),
            BasicMathPackage::new().as_shared_module(),
            BasicArrayPackage::new().as_shared_module(),
            BasicBlobPackage::new().as_shared_module(),
            BasicMapPackage::new().as_shared_module(),
            BasicIteratorPackage::new().as_shared_module(),
            BasicFnPackage::new().as_shared_module(),
            BitFieldPackage::new().as_shared_module(),
        ];
        let mut ours = Module::new();
        compare::register(&mut ours);
        host::register(&mut ours);
        modules.push(ours.into());
        modules
    })
}
