//! Watching buckets: how full each is, as a bar after each input, and how its tokens come back.

use std::io;

use anyhow::Result;
use serde_json::json;
use tollgate::{Decision, Key, Limit, Timestamp};

use super::super::console::{Console, Style};
use super::super::format;
use super::super::limits::read_key;
use super::desk::{Answer, Desk, to_json};

/// The most buckets that are watched at once.
const MOST: usize = 20;

/// Bars of the chart of how tokens come back.
const ROWS: i64 = 8;

/// Characters of a bar.
const WIDTH: i64 = 30;

/// A bucket that is watched.
pub(crate) struct Watched {
    limit: Limit,
    key: Key,
}

impl Watched {
    fn name(&self) -> String {
        format!("{} {}", self.limit.name(), format::value(&self.key.to_value()))
    }
}

/// Begins to watch a bucket, and shows how its tokens come back when nothing more is taken.
pub(super) fn begin(desk: &mut Desk, limit: &str, key: &str, console: &Console) -> Result<Answer> {
    let watched = Watched { limit: desk.engine.limit(limit)?, key: read_key(key)? };
    let answer = chart(desk, &watched, console)?;
    desk.watched.retain(|other| other.limit.name() != watched.limit.name() || other.key != watched.key);
    if desk.watched.len() >= MOST {
        desk.watched.remove(0);
    }
    desk.watched.push(watched);
    Ok(answer)
}

/// Shows the charts of everything that is watched.
pub(super) fn show(desk: &Desk, console: &Console) -> Result<Answer> {
    let charts: Vec<Answer> =
        desk.watched.iter().map(|watched| chart(desk, watched, console)).collect::<Result<_>>()?;
    let text = match charts.is_empty() {
        true => "nothing is watched: `.watch LIMIT KEY` begins it".to_owned(),
        false => charts.iter().map(|chart| chart.text.clone()).collect::<Vec<_>>().join("\n"),
    };
    Ok(Answer { value: charts.into_iter().map(|chart| chart.value).collect(), text })
}

/// Shows a bar of each bucket that is watched, after an input.
pub(super) fn follow(desk: &mut Desk, number: u64, console: &mut Console) -> io::Result<()> {
    let mut levels = Vec::new();
    for watched in &desk.watched {
        match desk.session.peek(&watched.limit, &watched.key) {
            Ok(decision) => levels.push((watched.name(), decision)),
            Err(error) => console.error(format!("{} cannot be watched: {error}", watched.name())),
        }
    }
    if levels.is_empty() {
        return Ok(());
    }
    let width = levels.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let line = |(name, decision): &(String, Decision)| format!("{name:width$}  {}", bar(decision, console));
    let text = levels.iter().map(line).collect::<Vec<_>>().join("\n");
    let value = levels.iter().map(|(name, decision)| json!({ "bucket": name, "decision": decision })).collect();
    desk.answer(number, "watch", Answer { value, text }, console)
}

/// How the tokens of a bucket come back: a bar now, and more until it is full.
fn chart(desk: &Desk, watched: &Watched, console: &Console) -> Result<Answer> {
    let now = desk.engine.now();
    let at_once = desk.engine.forecast(&watched.limit, &watched.key, now)?;
    let wait = at_once.reset_at.millis_since(now).max(0);
    let mut rows = vec![(now, at_once)];
    for row in 1..=ROWS {
        // A bucket that comes back within a few milliseconds has fewer moments than there are rows.
        let at = now.saturating_add_millis(wait / ROWS * row + wait % ROWS * row / ROWS);
        if rows.last().is_some_and(|(before, _)| *before < at) {
            rows.push((at, desk.engine.forecast(&watched.limit, &watched.key, at)?));
        }
    }
    let width = rows.iter().map(|(at, _)| moment(*at, now).len()).max().unwrap_or(0);
    let line =
        |(at, decision): &(Timestamp, Decision)| format!("  {:width$}  {}", moment(*at, now), bar(decision, console));
    let head = console.styled(Style::Strong, &format!("{}: {}", watched.name(), watched.limit.describe()));
    let lines: Vec<String> = std::iter::once(head).chain(rows.iter().map(line)).collect();
    let levels: Vec<_> = rows.iter().map(|(at, decision)| json!({ "at": at, "decision": decision })).collect();
    let value = json!({ "limit": watched.limit.name(), "key": to_json(&watched.key.to_value()), "levels": levels });
    Ok(Answer { value, text: lines.join("\n") })
}

fn moment(at: Timestamp, now: Timestamp) -> String {
    if at <= now { "now".to_owned() } else { format!("in {}", format::span(at.millis_since(now))) }
}

/// A bar of what is left, and what it says in numbers.
fn bar(decision: &Decision, console: &Console) -> String {
    let Decision { remaining, limit, .. } = *decision;
    let (full, empty) = if console.has_unicode() { ('█', '░') } else { ('#', '.') };
    let filled = filled(remaining, limit);
    let bar: String = (0..WIDTH).map(|cell| if cell < filled { full } else { empty }).collect();
    let style = match (remaining, remaining.saturating_mul(4) < limit) {
        (..=0, _) => Style::Bad,
        (_, true) => Style::Warning,
        _ => Style::Good,
    };
    let blocked = if decision.reason.as_str() == "blocked" { ", blocked" } else { "" };
    format!("{} {remaining} of {limit} left{blocked}", console.styled(style, &bar))
}

/// How many characters of a bar are full: some as long as anything is left, all only when everything is.
fn filled(remaining: i64, limit: i64) -> i64 {
    let (remaining, limit) = (i128::from(remaining.max(0)), i128::from(limit.max(1)));
    let part = (remaining * i128::from(WIDTH) / limit).clamp(i128::from(remaining > 0), i128::from(WIDTH));
    // It lies between 0 and the width of a bar.
    i64::try_from(part).unwrap_or(WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_full_or_empty_only_when_the_bucket_is() {
        for (remaining, limit, full) in [
            (0, 5, 0),
            (-3, 5, 0),
            (5, 5, WIDTH),
            (1, 1_000_000, 1),
            (999_999, 1_000_000, WIDTH - 1),
            (i64::MAX, i64::MAX, WIDTH),
            (0, 0, 0),
            (7, 5, WIDTH),
        ] {
            assert_eq!(filled(remaining, limit), full, "{remaining} of {limit}");
        }
    }
}
