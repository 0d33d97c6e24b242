//! Ids: version 7 UUIDs of an instant and random numbers that the caller brings.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::Rng;

use crate::time::Timestamp;

/// A new id: in the order of time, the rest from `random`, so that an equal seed gives equal ids.
pub(crate) fn new_id(now: Timestamp, random: &mut ChaCha12Rng) -> String {
    let millis = u64::try_from(now.as_millis()).unwrap_or(0);
    let mut bytes = [0_u8; 10];
    random.fill_bytes(&mut bytes);
    uuid::Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid().to_string()
}
