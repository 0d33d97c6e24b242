//! A limit setting by setting, for comparing declarations.

use crate::time::format_duration_ms;
use crate::value::Value;

use super::choice::Choice;
use super::definition::Limit;
use super::settings::{Settings, Start};

/// A setting that two declarations of one limit give differently; none where one of the kinds has no such setting.
pub(crate) type Difference = (&'static str, Option<Value>, Option<Value>);

impl Limit {
    /// The settings in which `self` and `after` differ, by the names that scripts use, in the order of declaration.
    ///
    /// Spans are text such as `5m`. A capacity that follows the rate in both is not repeated.
    pub(crate) fn differences(&self, after: &Limit) -> Vec<Difference> {
        let follows = |limit: &Limit| limit.max_tokens() == limit.rate();
        let (before, now) = (listed(self.settings()), listed(after.settings()));
        let value = |list: &[(&'static str, Value)], name: &str| {
            list.iter().find(|(other, _)| *other == name).map(|(_, value)| value.clone())
        };
        let mut names: Vec<&'static str> = before.iter().map(|(name, _)| *name).collect();
        names.extend(now.iter().map(|(name, _)| *name).filter(|name| !before.iter().any(|(other, _)| other == name)));
        names
            .into_iter()
            .filter(|name| *name != "capacity" || !(follows(self) && follows(after)))
            .map(|name| (name, value(&before, name), value(&now, name)))
            .filter(|(_, before, after)| before != after)
            .collect()
    }
}

/// Every setting that makes sense on the kind; spans that are not there are not there.
fn listed(settings: &Settings) -> Vec<(&'static str, Value)> {
    let span = |ms: i64| Value::Text(format_duration_ms(ms));
    let (rate, period) = settings.kind.fields();
    let mut list = vec![("kind", Value::from(settings.kind.name())), (rate, Value::Int(settings.rate))];
    match &settings.calendar {
        Some(calendar) => {
            list.push((period, Value::from(calendar.unit().name())));
            list.push(("zone", Value::from(calendar.zone())));
        }
        None => list.push((period, span(settings.period_ms))),
    }
    for choice in Choice::ALL.into_iter().filter(|choice| choice.senseless_on(settings.kind).is_none()) {
        let value = match choice {
            Choice::MinInterval if settings.min_interval_ms == 0 => continue,
            Choice::BlockFor if settings.block_for_ms == 0 => continue,
            Choice::Capacity => Value::Int(settings.capacity),
            Choice::MaxReserved => Value::Int(settings.max_reserved),
            Choice::MinInterval => span(settings.min_interval_ms),
            Choice::Start => match settings.start {
                Start::At(instant) => Value::Text(instant.to_string()),
                named => Value::Text(named.to_string()),
            },
            Choice::BlockFor => span(settings.block_for_ms),
            Choice::Shadow => Value::Bool(settings.shadow),
            Choice::Durable => Value::Bool(settings.durable),
            Choice::Shards => Value::Int(settings.shards),
            Choice::HashKeys => Value::Bool(settings.hash_keys),
        };
        list.push((choice.name(), value));
    }
    list
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn shown(before: &Limit, after: &Limit) -> String {
        let text = |value: Option<Value>| value.map_or("-".to_owned(), |value| value.to_string());
        let one = |(name, before, after)| format!("{name} {} {}", text(before), text(after));
        before.differences(after).into_iter().map(one).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn each_setting_that_differs_is_named_as_scripts_name_it() {
        let minute = Duration::from_secs(60);
        let base = Limit::fixed_window("x", 10, minute).unwrap();
        let slots = Limit::concurrency("x", 10, minute).unwrap();
        let quota = |unit, zone| Limit::calendar_quota("x", 10, unit, zone).unwrap();
        let (day, hour) = (crate::limit::CalendarUnit::Day, crate::limit::CalendarUnit::Hour);
        assert_eq!(shown(&base, &base.clone()), "");
        assert_eq!(shown(&base, &Limit::fixed_window("x", 20, minute).unwrap()), "rate 10 20");
        let wide = Limit::fixed_window("x", 20, minute).unwrap().capacity(30).unwrap();
        assert_eq!(shown(&base, &wide), "rate 10 20; capacity 10 30");
        let odd = base.clone().start(Start::Epoch).unwrap().block_for(minute).unwrap().shadow().unwrap();
        assert_eq!(shown(&base, &odd), r#"start "first" "epoch"; shadow false true; block_for - "1m""#);
        assert!(shown(&base, &slots).starts_with(r#"kind "fixed_window" "concurrency"; rate 10 -; period "1m" -; "#));
        assert!(shown(&base, &slots).ends_with(r#"max - 10; ttl - "1m""#), "{}", shown(&base, &slots));
        assert_eq!(
            shown(&quota(day, "UTC"), &quota(hour, "Asia/Tokyo")),
            r#"unit "day" "hour"; zone "UTC" "Asia/Tokyo""#
        );
    }
}
