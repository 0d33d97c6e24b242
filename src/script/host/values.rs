//! Values in scripts: text, addresses, digests, random numbers, ids and JSON.

use std::net::{IpAddr, Ipv6Addr};

use hmac::{Hmac, KeyInit, Mac};
use rand_chacha::rand_core::Rng;
use rhai::{Dynamic, EvalAltResult, ImmutableString, Module, NativeCallContext};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::value::Value;

use super::super::call::{Call, with};
use super::super::convert::{self, type_name};
use super::super::raised::{Failure, Raised, raise};

type Answer<T> = Result<T, Box<EvalAltResult>>;

pub(super) fn register(module: &mut Module) {
    register_text(module);
    register_digests(module);
    register_random(module);
    module.set_native_fn("to_json", |context: NativeCallContext, value: Dynamic| -> Answer<ImmutableString> {
        let value = convert::from_dynamic(&value).map_err(|why| bad(&context, "bad_value", why))?;
        Ok(value.to_json().into())
    });
    module.set_native_fn("parse_json", |context: NativeCallContext, text: &str| -> Answer<Dynamic> {
        let value = Value::from_json(text).map_err(|why| bad(&context, "bad_json", why.to_string()))?;
        if let Some(key) = convert::operator_key(&value) {
            let message = format!("the JSON holds the key `{key}`: only a procedure's own text may make operators");
            return Err(bad(&context, "bad_json", message));
        }
        Ok(convert::to_dynamic(value))
    });
}

fn bad(context: &NativeCallContext, code: &'static str, message: String) -> Box<EvalAltResult> {
    Raised::new(code, message).into_error(context.call_position())
}

fn register_text(module: &mut Module) {
    module.set_native_fn("lower", |text: &str| -> Answer<ImmutableString> { Ok(text.to_lowercase().into()) });
    module.set_native_fn("upper", |text: &str| -> Answer<ImmutableString> { Ok(text.to_uppercase().into()) });
    module.set_native_fn("trimmed", |text: &str| -> Answer<ImmutableString> { Ok(text.trim().into()) });
    for name in ["lower", "upper", "trimmed"] {
        module.set_native_fn(name, move |context: NativeCallContext, value: Dynamic| -> Answer<ImmutableString> {
            Err(bad(&context, "bad_value", format!("`{name}` takes a string, not {}", type_name(&value))))
        });
    }
    module.set_native_fn("ip_key", |context: NativeCallContext, text: &str| -> Answer<ImmutableString> {
        ip_key(text, 64).map(Into::into).map_err(|why| bad(&context, "bad_address", why))
    });
    module.set_native_fn("ip_key", |context: NativeCallContext, text: &str, bits: i64| -> Answer<ImmutableString> {
        ip_key(text, bits).map(Into::into).map_err(|why| bad(&context, "bad_address", why))
    });
    module.set_native_fn("ip_key", |context: NativeCallContext, value: Dynamic| -> Answer<ImmutableString> {
        let message = format!("an address is text such as \"192.0.2.1\", not {}", type_name(&value));
        Err(bad(&context, "bad_address", message))
    });
}

/// The canonical form of an address: IPv4 as it is, mapped IPv4 as IPv4, IPv6 as its network of `v6_bits`.
fn ip_key(text: &str, v6_bits: i64) -> Result<String, String> {
    if !(1..=128).contains(&v6_bits) {
        return Err(format!("an IPv6 network has 1 to 128 bits, not {v6_bits}"));
    }
    let shown: String = text.chars().take(64).collect();
    let address: IpAddr = text.trim().parse().map_err(|_| format!("`{shown}` is not an IP address"))?;
    Ok(match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) if v6_bits == 128 => address.to_string(),
        IpAddr::V6(address) => {
            let mask = u128::MAX << (128 - v6_bits);
            format!("{}/{v6_bits}", Ipv6Addr::from(u128::from(address) & mask))
        }
    })
}

fn register_digests(module: &mut Module) {
    module.set_native_fn("sha256", |text: &str| -> Answer<ImmutableString> { Ok(hex(&Sha256::digest(text)).into()) });
    module.set_native_fn(
        "hmac_sha256",
        |context: NativeCallContext, secret: &str, text: &str| -> Answer<ImmutableString> {
            let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
                .map_err(|why| bad(&context, "bad_value", why.to_string()))?;
            mac.update(text.as_bytes());
            Ok(hex(&mac.finalize().into_bytes()).into())
        },
    );
    module
        .set_native_fn("secure_eq", |a: &str, b: &str| -> Answer<bool> { Ok(a.as_bytes().ct_eq(b.as_bytes()).into()) });
    module.set_native_fn("secure_eq", |context: NativeCallContext, a: Dynamic, b: Dynamic| -> Answer<bool> {
        // A missing secret must never equal a missing guess.
        let message = format!("`secure_eq` compares two strings, not {} and {}", type_name(&a), type_name(&b));
        Err(bad(&context, "bad_value", message))
    });
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
        .map(char::from)
        .collect()
}

fn register_random(module: &mut Module) {
    module.set_native_fn("uuid", |context: NativeCallContext| -> Answer<ImmutableString> {
        with(&context, |call| Ok(new_id(call).into()))
    });
    module.set_native_fn("random", |context: NativeCallContext| -> Answer<f64> {
        // 53 bits fill a float's fraction evenly; the result is below 1.
        with(&context, |call| Ok((call.random().next_u64() >> 11) as f64 / (1_u64 << 53) as f64))
    });
    module.set_native_fn("random_int", |context: NativeCallContext, low: i64, high: i64| -> Answer<i64> {
        with(&context, |call| random_int(call, low, high))
    });
}

/// A whole number from `low` to `high`, both possible, every one as likely as the others.
fn random_int(call: &mut Call, low: i64, high: i64) -> Result<i64, Failure> {
    if low > high {
        return raise("bad_value", format!("random_int({low}, {high}): the first must not be above the second"));
    }
    let span = high.abs_diff(low);
    if span == u64::MAX {
        return Ok(call.random().next_u64() as i64);
    }
    let choices = span + 1;
    // What lies above the last whole multiple would favour small numbers, so it is drawn again.
    let usable = u64::MAX - (u64::MAX - choices + 1) % choices;
    loop {
        let drawn = call.random().next_u64();
        if drawn <= usable {
            return Ok(low.wrapping_add_unsigned(drawn % choices));
        }
    }
}

/// A version 7 UUID of the call's instant and random numbers.
pub(super) fn new_id(call: &mut Call) -> String {
    let millis = u64::try_from(call.now().as_millis()).unwrap_or(0);
    let mut random = [0_u8; 10];
    call.random().fill_bytes(&mut random);
    uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_one_form_each() {
        for (text, bits, key) in [
            (" 192.0.2.1 ", 64, "192.0.2.1"),
            ("::ffff:192.0.2.1", 64, "192.0.2.1"),
            ("2001:DB8:0:1:2:3:4:5", 64, "2001:db8:0:1::/64"),
            ("2001:db8::1", 48, "2001:db8::/48"),
            ("2001:db8::1", 128, "2001:db8::1"),
        ] {
            assert_eq!(ip_key(text, bits).as_deref(), Ok(key));
        }
        for (text, bits) in [("", 64), ("1.2.3", 64), ("01.2.3.4", 64), ("1.2.3.4:80", 64), ("::1", 0), ("::1", 129)] {
            assert!(ip_key(text, bits).is_err(), "{text}");
        }
    }
}
