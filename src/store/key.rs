//! Keys: every form of key in the store, in one ordered, prefix-coded space.
//!
//! | space | key after the space byte | value |
//! |---|---|---|
//! | `m` meta | name | format version, secrets, counters |
//! | `b` bucket | limit name, bucket key element | row: what was spent |
//! | `o` ruling | limit name, bucket key element | row: what an operator decided about a key |
//! | `c` collection | collection name | row: its indexes and their state |
//! | `d` document | collection name, `_id` | row: the document |
//! | `i` index | collection name, index name, elements of the indexed values, `_id` | empty |
//! | `r` release | number, big-endian | row: the files of a release |
//! | `j` job | id | row: what is to be done and how far it has come |
//! | `k` job key | handler, idempotency key | row: the id of the job |
//! | `p` job place | queue, handler, 100 minus priority, due and created instants, ordinal, id | empty |
//! | `s` schedule | name | row: the slot that was enqueued last |
//! | `e` expiry | instant, 8 ordered bytes, then the whole key of a row | empty |
//!
//! Names and elements are written as `element` says: comparing their bytes is comparing what they hold.

use crate::element::{Encoded, put_element, put_name, take_element, take_name};
use crate::time::Timestamp;
use crate::value::Value;

use super::Bytes;

/// The first byte of a key: which kind of row it leads to.
pub(crate) mod space {
    pub(crate) const META: u8 = b'm';
    pub(crate) const BUCKET: u8 = b'b';
    pub(crate) const RULING: u8 = b'o';
    pub(crate) const COLLECTION: u8 = b'c';
    pub(crate) const DOCUMENT: u8 = b'd';
    pub(crate) const INDEX: u8 = b'i';
    pub(crate) const RELEASE: u8 = b'r';
    pub(crate) const JOB: u8 = b'j';
    pub(crate) const JOB_KEY: u8 = b'k';
    pub(crate) const JOB_PLACE: u8 = b'p';
    pub(crate) const SCHEDULE: u8 = b's';
    pub(crate) const EXPIRY: u8 = b'e';
}

/// A key being built: the space byte, then names and elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct KeyBuffer(Encoded);

impl KeyBuffer {
    pub(crate) fn new(space: u8) -> Self {
        let mut bytes = Encoded::new();
        bytes.push(space);
        KeyBuffer(bytes)
    }

    /// Appends a name, terminated so that no name is a prefix of another.
    pub(crate) fn name(mut self, name: &str) -> Self {
        put_name(&mut self.0, name.as_bytes());
        self
    }

    /// Appends a value as one ordered element.
    pub(crate) fn element(mut self, value: &Value) -> Self {
        put_element(&mut self.0, value);
        self
    }

    /// Appends bytes as they are; only at the end of a key, or when they delimit themselves.
    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn into_vec(self) -> Vec<u8> {
        self.0.into_vec()
    }
}

impl std::ops::Deref for KeyBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<KeyBuffer> for Bytes {
    fn from(key: KeyBuffer) -> Bytes {
        Bytes::from(&key[..])
    }
}

/// The key of a meta row.
pub(crate) fn meta(name: &str) -> Vec<u8> {
    KeyBuffer::new(space::META).name(name).into_vec()
}

/// The key of a document.
pub(crate) fn document(collection: &str, id: &str) -> Vec<u8> {
    KeyBuffer::new(space::DOCUMENT).name(collection).name(id).into_vec()
}

/// The key of an expiry entry: the row `row_key` may have expired at `at`, not earlier.
pub(crate) fn expiry(at: Timestamp, row_key: &[u8]) -> KeyBuffer {
    KeyBuffer::new(space::EXPIRY).raw(&ordered_i64(at.as_millis())).raw(row_key)
}

/// Splits an expiry entry's key into its instant and the row's key.
pub(crate) fn split_expiry(key: &[u8]) -> Option<(Timestamp, &[u8])> {
    let rest = key.strip_prefix(&[space::EXPIRY])?;
    let (instant, row_key) = rest.split_first_chunk::<8>()?;
    Some((Timestamp::from_millis((u64::from_be_bytes(*instant) ^ (1 << 63)) as i64), row_key))
}

/// The least key greater than every key that begins with `prefix`; none when `prefix` is all 0xFF.
pub(crate) fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let keep = prefix.iter().rposition(|byte| *byte != 0xFF)?;
    let mut next = prefix[..=keep].to_vec();
    next[keep] += 1;
    Some(next)
}

/// Eight bytes whose order is the order of the integers.
pub(crate) fn ordered_i64(n: i64) -> [u8; 8] {
    ((n as u64) ^ (1 << 63)).to_be_bytes()
}

/// The text form of a key, for tools and messages: `bucket login ["a@x.com"]`, `document users "u1"`.
pub(crate) fn describe(key: &[u8]) -> String {
    fn try_describe(key: &[u8]) -> Option<String> {
        let (space, rest) = key.split_first()?;
        let name = |bytes| take_name(bytes).map(|(name, rest)| (String::from_utf8_lossy(&name).into_owned(), rest));
        Some(match *space {
            space::META => format!("meta {}", name(rest)?.0),
            space::COLLECTION => format!("collection {}", name(rest)?.0),
            space::BUCKET | space::RULING => {
                let what = if *space == space::BUCKET { "bucket" } else { "ruling" };
                let (limit, rest) = name(rest)?;
                match rest {
                    [] => format!("{what} {limit}"),
                    rest => format!("{what} {limit} {}", take_element(rest)?.0),
                }
            }
            space::DOCUMENT => {
                let (collection, rest) = name(rest)?;
                format!("document {collection} {:?}", name(rest)?.0)
            }
            space::INDEX => {
                let (collection, rest) = name(rest)?;
                format!("index entry {collection}.{}", name(rest)?.0)
            }
            space::RELEASE => format!("release {}", u64::from_be_bytes(rest.try_into().ok()?)),
            space::JOB => format!("job {}", name(rest)?.0),
            space::SCHEDULE => format!("schedule {}", name(rest)?.0),
            space::JOB_KEY | space::JOB_PLACE => {
                let (first, rest) = name(rest)?;
                let second = name(rest)?.0;
                match *space {
                    space::JOB_KEY => format!("job key {first} {second:?}"),
                    _ => format!("job place {first} {second}"),
                }
            }
            space::EXPIRY => {
                let (at, row) = split_expiry(key)?;
                format!("expiry at {at} of {}", describe(row))
            }
            _ => return None,
        })
    }
    try_describe(key).unwrap_or_else(|| format!("key {key:02x?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_the_beginning_of_another() {
        let range = crate::store::Range::prefix(KeyBuffer::new(space::META).name("a").as_slice());
        assert!(!range.contains(KeyBuffer::new(space::META).name("a\0b").as_slice()));
        assert!(range.contains(KeyBuffer::new(space::META).name("a").raw(b"\xFFb").as_slice()));
    }

    #[test]
    fn successors() {
        assert_eq!(successor(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(successor(&[1, 0xFF]), Some(vec![2]));
        assert_eq!(successor(&[0xFF]), None);
    }
}
