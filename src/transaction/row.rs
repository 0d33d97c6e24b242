//! Rows: values that may expire, each with its one entry in the expiry index.
//!
//! A row holds its true instant of expiry and the instant its index entry stands at, which is never later.
//! Extending a row's life touches no entry (the sweeper finds the row alive and moves the entry); shortening
//! moves it at once. At and after its expiry a row is invisible to every read, swept or not.
//!
//! Stored form: version byte `1`, flags (bit 0: expires), then for a row that expires two big-endian `i64`
//! (expires_at, indexed_at), then the body.

use crate::element::Encoded;
use crate::store::{Bytes, StoreError, key};
use crate::time::Timestamp;

use super::{Fault, Transaction};

const VERSION: u8 = 1;
const EXPIRES: u8 = 1;

/// A stored row as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    bytes: Bytes,
    body_at: usize,
    /// When the row expires, and where its index entry stands.
    pub(crate) expiry: Option<Expiry>,
}

/// The two instants of a row that expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expiry {
    pub(crate) expires_at: Timestamp,
    pub(crate) indexed_at: Timestamp,
}

impl Row {
    /// Reads a row's stored form.
    pub(crate) fn decode(bytes: Bytes) -> Result<Row, StoreError> {
        let damaged = || StoreError::Corrupt("a row has an unreadable header".into());
        match bytes.get(..2).ok_or_else(damaged)? {
            [VERSION, 0] => Ok(Row { bytes, body_at: 2, expiry: None }),
            [VERSION, EXPIRES] => {
                let header: &[u8; 16] = bytes.get(2..18).and_then(|h| h.try_into().ok()).ok_or_else(damaged)?;
                let [expires_at, indexed_at] = [&header[..8], &header[8..]]
                    .map(|half| Timestamp::from_millis(i64::from_be_bytes(half.try_into().unwrap_or_default())));
                Ok(Row { bytes, body_at: 18, expiry: Some(Expiry { expires_at, indexed_at }) })
            }
            _ => Err(damaged()),
        }
    }

    /// What the row holds.
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.body_at..]
    }

    /// Whether the row is invisible at `now`.
    pub(crate) fn expired(&self, now: Timestamp) -> bool {
        self.expiry.is_some_and(|expiry| expiry.expires_at <= now)
    }
}

fn encode(body: &[u8], expiry: Option<Expiry>) -> Encoded {
    let mut bytes = Encoded::with_capacity(18 + body.len());
    match expiry {
        None => bytes.extend_from_slice(&[VERSION, 0]),
        Some(expiry) => {
            bytes.extend_from_slice(&[VERSION, EXPIRES]);
            bytes.extend_from_slice(&expiry.expires_at.as_millis().to_be_bytes());
            bytes.extend_from_slice(&expiry.indexed_at.as_millis().to_be_bytes());
        }
    }
    bytes.extend_from_slice(body);
    bytes
}

impl Transaction {
    /// The row at `key`, unless it has expired.
    pub(crate) fn get_row(&mut self, key: &[u8]) -> Result<Option<Row>, Fault> {
        let now = self.now();
        Ok(self.get_any_row(key)?.filter(|row| !row.expired(now)))
    }

    /// The row at `key`, expired or not: for sweeping and checking.
    pub(crate) fn get_any_row(&mut self, key: &[u8]) -> Result<Option<Row>, Fault> {
        Ok(self.get(key)?.map(Row::decode).transpose()?)
    }

    /// Puts a row and keeps its expiry entry right.
    pub(crate) fn put_row(&mut self, key: &[u8], body: &[u8], expires_at: Option<Timestamp>) -> Result<(), Fault> {
        let before = self.get_any_row(key)?;
        self.put_row_over(key, before.as_ref(), body, expires_at)
    }

    /// [`put_row`](Transaction::put_row) for who has just read the row that is there, expired or not: saves reading it again.
    pub(crate) fn put_row_over(
        &mut self,
        key: &[u8],
        before: Option<&Row>,
        body: &[u8],
        expires_at: Option<Timestamp>,
    ) -> Result<(), Fault> {
        let indexed_at = before.and_then(|row| row.expiry).map(|expiry| expiry.indexed_at);
        let expiry = match (expires_at, indexed_at) {
            (Some(expires_at), Some(indexed_at)) if indexed_at <= expires_at => Some(Expiry { expires_at, indexed_at }),
            (Some(expires_at), stale) => {
                self.drop_entry(stale, key)?;
                self.put(&key::expiry(expires_at, key), &[])?;
                Some(Expiry { expires_at, indexed_at: expires_at })
            }
            (None, stale) => {
                self.drop_entry(stale, key)?;
                None
            }
        };
        self.put(key, &encode(body, expiry))
    }

    /// Deletes a row with its expiry entry; one that is not there is fine.
    pub(crate) fn delete_row(&mut self, key: &[u8]) -> Result<(), Fault> {
        if let Some(row) = self.get_any_row(key)? {
            self.drop_entry(row.expiry.map(|expiry| expiry.indexed_at), key)?;
            self.delete(key)?;
        }
        Ok(())
    }

    /// Moves the expiry entry of a living row from `at` to the row's expiry.
    pub(crate) fn move_expiry_entry(&mut self, key: &[u8], row: &Row, at: Timestamp) -> Result<(), Fault> {
        self.delete(&key::expiry(at, key))?;
        let Some(Expiry { expires_at, indexed_at }) = row.expiry else { return Ok(()) };
        if indexed_at != at {
            // A stray entry: the row's own is elsewhere.
            return Ok(());
        }
        self.put(&key::expiry(expires_at, key), &[])?;
        self.put(key, &encode(row.body(), Some(Expiry { expires_at, indexed_at: expires_at })))
    }

    fn drop_entry(&mut self, indexed_at: Option<Timestamp>, key: &[u8]) -> Result<(), Fault> {
        match indexed_at {
            Some(at) => self.delete(&key::expiry(at, key)),
            None => Ok(()),
        }
    }
}
