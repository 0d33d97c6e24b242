//! `tollgate check --explain`: what the codes of errors and warnings stand for.

use anyhow::Result;
use serde::Serialize;
use tollgate::{Rule, Severity};

use super::console::{Console, Style};
use super::exit::{Exit, NotFoundError};
use super::format;

/// The width that explanations are broken to, in characters.
const WIDTH: usize = 100;

/// A rule, as programs read it.
#[derive(Serialize)]
struct RuleRecord {
    code: &'static str,
    severity: &'static str,
    summary: &'static str,
    explanation: &'static str,
    bad: &'static str,
    good: &'static str,
}

/// Explains one code, or lists all when none is named.
pub(crate) fn explain(code: &str, console: &mut Console) -> Result<Exit> {
    if code.is_empty() {
        list(console)?;
        return Ok(Exit::Returned);
    }
    let Some(rule) = Rule::of(code) else {
        let message = format!("there is no code `{code}`: `tollgate check --explain` lists those there are");
        return Err(NotFoundError(message).into());
    };
    if console.json {
        console.record(&RuleRecord::of(rule))?;
    } else {
        show(rule, console)?;
    }
    Ok(Exit::Returned)
}

fn list(console: &mut Console) -> Result<()> {
    if console.json {
        for rule in Rule::all() {
            console.record(&RuleRecord::of(rule))?;
        }
        return Ok(());
    }
    let rows = Rule::all().map(|rule| [rule.code, severity(rule), rule.summary].map(str::to_owned).to_vec());
    console.line(format::table(&["code", "severity", "what it tells of"], rows))?;
    Ok(())
}

fn show(rule: &Rule, console: &mut Console) -> Result<()> {
    let code = console.styled(Style::Strong, rule.code);
    console.line(format!("{code} ({}): {}", severity(rule), rule.summary))?;
    console.line("")?;
    for line in broken(rule.explanation) {
        console.line(line)?;
    }
    for (title, example) in [("With it:", rule.bad), ("Without it:", rule.good)] {
        if !example.is_empty() {
            console.line(format!("\n{title}\n"))?;
            for line in example.lines() {
                console.line(format!("    {line}").trim_end())?;
            }
        }
    }
    if rule.may_be_allowed() {
        let allow = format!("allow({}): why", rule.code);
        let about = "behind the line or on the line before it";
        console.line(format!("\nAllowed by `// {allow}` {about}, `//! {allow}` for the file."))?;
    }
    Ok(())
}

fn severity(rule: &Rule) -> &'static str {
    match rule.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// A text in lines of a readable width.
fn broken(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

impl RuleRecord {
    fn of(rule: &Rule) -> RuleRecord {
        let Rule { code, summary, explanation, bad, good, .. } = *rule;
        RuleRecord { code, severity: severity(rule), summary, explanation, bad, good }
    }
}
