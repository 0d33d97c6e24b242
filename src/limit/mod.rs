//! Limits: pure arithmetic on tokens. No store and no clock; state, now and cost in, decision and new state out.
//!
//! A [`Limit`] says how many tokens a [`Key`] may spend. What is stored for one limit and one key is a
//! [`State`]: what has been *spent* and when, never what is left, so an absent state is a full bucket and a
//! state expires at the instant at which there is nothing left to remember.
//!
//! | file | holds |
//! |---|---|
//! | `definition` | the limit as declared, cheap to clone |
//! | `settings` | what can be declared, on which kind it makes sense, and its bounds |
//! | `key`, `cost`, `decision` | what goes in, what comes out |
//! | `fixed_window`, `token_bucket` | one kind each: how spent tokens wear off |
//! | `rule` | the kinds behind one face |
//! | `state` | the stored form |
//! | `standing` | a bucket at one instant: clock steps, changed settings, cooldown, block; the operations |
//! | `combination` | many answers made one |
//! | `describe` | a limit in words |
//!
//! All levels are integers scaled by the period, in `i128`. The bounds in `settings` keep every product below
//! 2^127; what users can pile up without bound (charges) saturates.

mod combination;
mod cost;
mod decision;
mod definition;
mod describe;
mod fixed_window;
mod key;
mod rule;
mod settings;
mod standing;
mod state;
mod token_bucket;

pub(crate) use combination::Combination;
pub use cost::{Cost, InvalidCost};
pub use decision::{Decision, Reason, Violation};
pub use definition::Limit;
pub(crate) use key::MAX_KEY_BYTES;
pub use key::{InvalidKey, Key, KeyPart};
pub use settings::{InvalidLimit, Kind, Start};
pub(crate) use standing::{Change, Mode, Standing, Verdict};
pub(crate) use state::State;
