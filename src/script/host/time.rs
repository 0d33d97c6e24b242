//! Time in scripts: the call's one instant, spans, and civil time in zones.

use jiff::ToSpan;
use jiff::civil::{Time, Weekday};
use jiff::tz::TimeZone;
use rhai::{Dynamic, EvalAltResult, ImmutableString, Module, NativeCallContext};

use crate::time::{InvalidTime, Timestamp, parse_duration_ms};

use super::super::call::with;
use super::super::convert::type_name;
use super::super::raised::Raised;

type Answer<T> = Result<T, Box<EvalAltResult>>;

pub(super) fn register(module: &mut Module) {
    module.set_native_fn("now", |context: NativeCallContext| -> Answer<i64> {
        with(&context, |call| Ok(call.now().as_millis()))
    });
    for (name, unit) in [("seconds", 1_000_i64), ("minutes", 60_000), ("hours", 3_600_000), ("days", 86_400_000)] {
        module.set_native_fn(name, move |context: NativeCallContext, n: i64| -> Answer<i64> {
            n.checked_mul(unit)
                .ok_or_else(|| bad(&context, format!("{name}({n}) is more milliseconds than can be counted")))
        });
        module.set_native_fn(name, move |context: NativeCallContext, n: f64| -> Answer<i64> {
            let ms = n * unit as f64;
            if ms.fract() != 0.0 || ms.abs() > 9e15 {
                return Err(bad(&context, format!("{name}({n}) is no whole number of milliseconds")));
            }
            Ok(ms as i64)
        });
        module.set_native_fn(name, move |context: NativeCallContext, n: Dynamic| -> Answer<i64> {
            Err(bad(&context, format!("`{name}` takes a number, not {}", type_name(&n))))
        });
    }
    module.set_native_fn("duration", |context: NativeCallContext, text: &str| -> Answer<i64> {
        parse_duration_ms(text).map_err(|why| bad(&context, why.to_string()))
    });
    module.set_native_fn("parse_time", |context: NativeCallContext, text: &str| -> Answer<i64> {
        text.parse::<Timestamp>().map(Timestamp::as_millis).map_err(|why| bad(&context, why.to_string()))
    });
    module.set_native_fn("format_time", |context: NativeCallContext, ms: i64| -> Answer<ImmutableString> {
        instant(ms).map(|_| Timestamp::from_millis(ms).to_string().into()).map_err(|why| bad(&context, why))
    });
    module.set_native_fn("format_time", |context: NativeCallContext, ms: i64, zone: &str| -> Answer<ImmutableString> {
        format_in(ms, zone).map(Into::into).map_err(|why| bad(&context, why))
    });
    module.set_native_fn("start_of", |context: NativeCallContext, unit: &str, ms: i64| -> Answer<i64> {
        start_of(unit, ms, "UTC").map_err(|why| bad(&context, why))
    });
    module.set_native_fn("start_of", |context: NativeCallContext, unit: &str, ms: i64, zone: &str| -> Answer<i64> {
        start_of(unit, ms, zone).map_err(|why| bad(&context, why))
    });
}

fn bad(context: &NativeCallContext, message: String) -> Box<EvalAltResult> {
    Raised::new("bad_time", message).into_error(context.call_position())
}

fn instant(ms: i64) -> Result<jiff::Timestamp, String> {
    jiff::Timestamp::from_millisecond(ms).map_err(|_| format!("{ms} ms is outside the years -9999 to 9999"))
}

fn zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name).map_err(|_| InvalidTime::Zone(name.to_owned()).to_string())
}

fn format_in(ms: i64, name: &str) -> Result<String, String> {
    let zoned = instant(ms)?.to_zoned_datetime(zone(name)?);
    // As many digits as there are, as the form without a zone has them.
    let digits = if ms.rem_euclid(1_000) == 0 { "" } else { "%.f" };
    jiff::fmt::strtime::format(format!("%Y-%m-%dT%H:%M:%S{digits}%:z"), &zoned).map_err(|why| why.to_string())
}

/// The first instant of the civil hour, day, week (from Monday), month or year that `ms` lies in.
fn start_of(unit: &str, ms: i64, name: &str) -> Result<i64, String> {
    let zone = zone(name)?;
    let zoned = instant(ms)?.to_zoned_datetime(zone.clone());
    let outside = |why: jiff::Error| format!("the start of that {unit} is outside the years -9999 to 9999: {why}");
    let date = zoned.date();
    let date = match unit {
        "hour" => {
            // By the clock's hand and not by the hour's number: the hour that a zone repeats begins twice.
            let into = i64::from(zoned.minute()) * 60_000 + i64::from(zoned.second()) * 1_000;
            return Ok(ms - ms.rem_euclid(1_000) - into);
        }
        "day" => date,
        "week" => date.checked_sub(i64::from(date.weekday().since(Weekday::Monday)).days()).map_err(outside)?,
        "month" => date.first_of_month(),
        "year" => date.first_of_year(),
        _ => return Err(InvalidTime::Unit(unit.to_owned()).to_string()),
    };
    // Midnight that a zone leaves out begins with the first instant after it.
    let start = date.to_datetime(Time::midnight()).to_zoned_datetime(zone).map_err(outside)?;
    Ok(start.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millis()
    }

    #[test]
    fn civil_units_begin_where_the_zone_says() {
        for (unit, instant, zone, start) in [
            ("day", "2026-03-29T12:00:00Z", "Europe/Berlin", "2026-03-28T23:00:00Z"),
            ("week", "2026-01-01T00:00:00Z", "UTC", "2025-12-29T00:00:00Z"),
            ("month", "2026-02-28T23:30:00Z", "Europe/Berlin", "2026-02-28T23:00:00Z"),
            ("year", "2026-06-01T00:00:00Z", "America/New_York", "2026-01-01T05:00:00Z"),
            ("hour", "2026-10-25T01:30:00.250Z", "Europe/Berlin", "2026-10-25T01:00:00Z"),
            ("hour", "2026-01-01T00:50:00Z", "Asia/Kolkata", "2026-01-01T00:30:00Z"),
        ] {
            assert_eq!(start_of(unit, at(instant), zone), Ok(at(start)), "{unit} {instant} {zone}");
        }
        assert!(start_of("day", 0, "Mars/Olympus").unwrap_err().contains("Mars/Olympus"));
        assert!(start_of("decade", 0, "UTC").is_err());
        assert!(start_of("day", i64::MAX, "UTC").is_err());
    }

    #[test]
    fn times_are_written_in_their_zone() {
        assert_eq!(format_in(0, "Asia/Kolkata").unwrap(), "1970-01-01T05:30:00+05:30");
        assert_eq!(format_in(1, "UTC").unwrap(), "1970-01-01T00:00:00.001+00:00");
        assert_eq!(format_in(250, "UTC").unwrap(), "1970-01-01T00:00:00.25+00:00");
    }
}
