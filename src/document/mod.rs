//! Documents: maps with an `_id`, in collections, found by filters and indexes, altered by changes.
//!
//! A document is one row `d collection id` (see `store::key`), its body the MessagePack of the whole map. Each index
//! of the collection adds one entry `i collection index values id`, empty. A collection that was never declared
//! works: it has no indexes, does not expire and is durable.
//!
//! **How a caller gets a [`Collection`](collection::Collection).** What a collection is lives in one row, `c collection`,
//! written by [`catalogue::declare`] when procedures are loaded. Callers ask
//! [`Catalogue::collection`](catalogue::Catalogue::collection): one `tx.get` of that row, whose decoded form is shared
//! as long as the bytes stay the same. Because the row is read in the caller's own transaction, a call that runs while
//! an index appears or disappears clashes and runs again: no write can miss an index.
//!
//! What holds, and is checked by `verify` and by the model tests:
//!
//! * **An index changes the cost, never the answer.** Results come in the order asked for, else in the order of `_id`;
//!   ties of a sort are in the order of `_id`, in the direction of its last field.
//! * The entries of a ready index are exactly those of the rows; a row that expires has one expiry entry.
//! * Each operation is atomic: one that fails has written nothing. `update` and `delete` first settle which documents
//!   match, then write; uniqueness is judged after all of an operation's changes, so `$inc` over a unique field works.
//! * A document whose time has come is invisible to everything, unique checks included, swept or not.
//! * Each row looked at is one document read, expired ones too: work is what the budget bounds.
//!
//! What is not here: joins, aggregation, paths into arrays (a path goes through maps; a numeric segment is a field
//! name; equality on an array or a map is equality of the whole value, never of an element).

pub(crate) mod build;
pub(crate) mod catalogue;
pub(crate) mod change;
pub(crate) mod collection;
mod compare;
pub(crate) mod error;
pub(crate) mod expire;
pub(crate) mod filter;
pub(crate) mod find;
mod form;
mod index;
pub(crate) mod options;
mod path;
pub(crate) mod plan;
mod row;
pub(crate) mod tally;
pub(crate) mod verify;
pub(crate) mod write;

#[cfg(test)]
mod model_test;
#[cfg(test)]
mod operation_test;
