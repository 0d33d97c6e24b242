//! Host functions: what procedures can do besides thinking, by topic.

use rhai::Module;

mod caller;
pub(super) mod collections;
mod data;
mod jobs;
mod key;
pub(super) mod limits;
mod log;
mod outcome;
mod rulings;
pub(super) mod schedules;
mod time;
mod values;

/// Registers all of them.
pub(super) fn register(module: &mut Module) {
    key::register(module);
    limits::register(module);
    rulings::register(module);
    collections::register(module);
    data::register(module);
    jobs::register(module);
    schedules::register(module);
    time::register(module);
    values::register(module);
    caller::register(module);
    log::register(module);
    outcome::register(module);
}
