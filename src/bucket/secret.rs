//! The secret of a store, with which the keys of limits that hash them are hashed.

use std::borrow::Cow;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::limit::{Key, Limit};
use crate::store::{StoreError, key};
use crate::transaction::{Fault, Transaction};

const SECRET_BYTES: usize = 32;

/// The key under which the bucket of `limit` and `key` is stored: the key itself, or its keyed hash.
pub(super) fn stored_key<'a>(tx: &mut Transaction, limit: &Limit, key: &'a Key) -> Result<Cow<'a, Key>, Fault> {
    // A key out of a listing is hashed already.
    if !limit.hashes_keys() || key.is_hash() {
        return Ok(Cow::Borrowed(key));
    }
    let secret = secret(tx)?;
    let failed = |_| StoreError::Corrupt("the secret of the store is no key: restore it from a backup".into());
    let mut mac = Hmac::<Sha256>::new_from_slice(&secret).map_err(failed)?;
    mac.update(key.encoded());
    Ok(Cow::Owned(Key::of_hash(mac.finalize().into_bytes().to_vec())))
}

/// The secret, made at its first use.
fn secret(tx: &mut Transaction) -> Result<Vec<u8>, Fault> {
    let row = key::meta("secret");
    if let Some(secret) = tx.get(&row)? {
        return match secret.len() {
            SECRET_BYTES => Ok(secret.to_vec()),
            n => Err(StoreError::Corrupt(format!("the secret of the store has {n} bytes, not 32")).into()),
        };
    }
    let mut secret = vec![0; SECRET_BYTES];
    let failed = |why: getrandom::Error| StoreError::Io {
        what: "asking the system for random bytes".into(),
        cause: why.to_string(),
    };
    getrandom::fill(&mut secret).map_err(failed)?;
    match tx.put(&row, &secret) {
        // Who only looks finds no bucket under any secret.
        Ok(()) | Err(Fault::ReadOnly) => Ok(secret),
        Err(fault) => Err(fault),
    }
}
