//! Releases: the procedure files kept in the store, numbered, each a whole set.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::store::key::{KeyBuffer, space};
use crate::store::{Direction, Range, StoreError};
use crate::time::Timestamp;
use crate::transaction::row::Row;
use crate::transaction::{Fault, Transaction};
use crate::value::Value;

/// A set of procedure files as it was deployed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Release {
    /// Its number; the highest one is current.
    pub number: u64,
    /// When it was deployed.
    pub at: Timestamp,
    /// SHA-256 of the files, in hex: equal sets have equal hashes.
    pub hash: String,
    /// The release whose files this one brings back, when it is a rollback.
    pub rollback_of: Option<u64>,
    /// The files, by path.
    pub files: Vec<ReleaseFile>,
}

/// One file of a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseFile {
    /// Its path below the deployed folder.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// Stores `files` as the next release.
pub(crate) fn add(tx: &mut Transaction, files: Vec<ReleaseFile>, rollback_of: Option<u64>) -> Result<Release, Fault> {
    let number = current(tx)?.map_or(0, |release| release.number) + 1;
    let release = Release { number, at: tx.now(), hash: hash(&files), rollback_of, files };
    let mut body = Vec::new();
    let value = Value::from_serde(&release).map_err(|why| StoreError::io("storing a release", why))?;
    value.encode(&mut body);
    tx.require_durable();
    tx.put_row(&key(number), &body, None)?;
    Ok(release)
}

/// The release with the highest number.
pub(crate) fn current(tx: &mut Transaction) -> Result<Option<Release>, Fault> {
    let rows = tx.scan(&Range::prefix(&[space::RELEASE]), Direction::Descending, 1)?;
    rows.into_iter().next().map(|(_, bytes)| decode(bytes)).transpose()
}

/// The release `number`.
pub(crate) fn get(tx: &mut Transaction, number: u64) -> Result<Option<Release>, Fault> {
    tx.get(&key(number))?.map(decode).transpose()
}

/// Every release, oldest first.
pub(crate) fn list(tx: &mut Transaction) -> Result<Vec<Release>, Fault> {
    let rows = tx.scan(&Range::prefix(&[space::RELEASE]), Direction::Ascending, usize::MAX)?;
    rows.into_iter().map(|(_, bytes)| decode(bytes)).collect()
}

fn decode(bytes: crate::store::Bytes) -> Result<Release, Fault> {
    let row = Row::decode(bytes)?;
    let release = Value::decode(row.body()).and_then(Value::into_serde);
    Ok(release.map_err(|why| StoreError::Corrupt(format!("a release is unreadable: {why}")))?)
}

fn key(number: u64) -> Vec<u8> {
    KeyBuffer::new(space::RELEASE).raw(&number.to_be_bytes()).into_vec()
}

fn hash(files: &[ReleaseFile]) -> String {
    let mut digest = Sha256::new();
    for file in files {
        // Lengths first, so that no two sets of files run together to the same bytes.
        for part in [&file.path, &file.text] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
