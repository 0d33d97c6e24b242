//! Limits: pure arithmetic on tokens. No store and no clock; state, now and cost in, decision and new state out.
//!
//! A [`Limit`] says how many tokens a [`Key`] may spend. What is stored for one limit and one key is a
//! [`State`]: what has been *spent* and when, never what is left, so an absent state is a full bucket and a
//! state expires at the instant at which there is nothing left to remember.
//!
//! | file | holds |
//! |---|---|
//! | `definition` | the limit as declared, cheap to clone |
//! | `kind`, `settings` | what can be declared, and its bounds |
//! | `choice` | what can be chained, and on which kind it makes sense |
//! | `key`, `cost`, `decision` | what goes in, what comes out |
//! | `fixed_window`, `token_bucket`, `sliding_window`, `sliding_counter`, `calendar_quota`, `concurrency` | one kind each: how spent tokens wear off |
//! | `wears`, `rule` | what each kind answers; all of them behind one face |
//! | `calendar` | where civil periods begin |
//! | `state` | the stored form |
//! | `standing` | a bucket at one instant: clock steps, changed settings, cooldown, block; the operations |
//! | `combination` | many answers made one |
//! | `asked`, `http` | the limits that were asked; what HTTP says of them |
//! | `decided` | what an operator has decided about a key |
//! | `describe` | a limit in words |
//! | `listing` | a limit setting by setting, compared with another |
//!
//! All levels are integers scaled by the period, in `i128`. The bounds in `settings` keep every product below
//! 2^127; what users can pile up without bound (charges) saturates.
//!
//! A state takes at most 90 bytes, and about 20, but for two kinds: a sliding window remembers at most `rate` entries, and a
//! concurrency limit at most `max` leases, either at most 10 000, of a few bytes each.

mod asked;
mod calendar;
mod calendar_quota;
mod choice;
mod combination;
mod concurrency;
mod cost;
mod decided;
mod decision;
mod definition;
mod describe;
mod fixed_window;
mod http;
mod key;
mod kind;
mod listing;
mod number;
mod rule;
mod settings;
mod sliding_counter;
mod sliding_window;
mod standing;
mod state;
mod token_bucket;
mod wears;

pub(crate) use asked::AllAsked;
pub use calendar::CalendarUnit;
pub(crate) use combination::Combination;
pub use cost::{Cost, InvalidCost};
pub use decided::{Decided, Override};
pub use decision::{Decision, Granted, Reason, Violation};
pub use definition::Limit;
pub(crate) use http::{fields as http_fields, legacy_fields as legacy_http_fields};
pub(crate) use key::MAX_KEY_BYTES;
pub use key::{InvalidKey, Key, KeyPart};
pub use kind::Kind;
pub use settings::{InvalidLimit, Start};
pub(crate) use standing::{Change, Mode, Ruling, Standing, Verdict};
pub(crate) use state::State;
