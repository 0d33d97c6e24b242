//! Dot-commands: their names, what follows them, and what each does.

use std::path::PathBuf;
use std::time::Duration;

use tollgate::{JobState, Map, Timestamp, parse_duration};

use super::super::{argument, jobs};

/// A dot-command as it was read.
#[derive(Debug, PartialEq)]
pub(crate) enum Dot {
    Help(Option<String>),
    Procs,
    Limits {
        name: Option<String>,
        key: Option<String>,
    },
    Colls,
    Jobs(Option<JobState>),
    Source(String),
    Clock,
    At(Timestamp),
    Advance(Duration),
    Freeze,
    Real,
    Begin,
    Commit,
    /// To a savepoint, or the whole transaction.
    Rollback(Option<String>),
    Savepoint(Option<String>),
    Caller(Option<Map>),
    Reload,
    Open(PathBuf),
    Read(String),
    Explain(String),
    Watch(Watching),
    /// A setting, and what it becomes; asked for when not told.
    Set(Setting, Option<bool>),
    Exit(Option<u8>),
}

/// What `.watch` is to do.
#[derive(Debug, PartialEq)]
pub(crate) enum Watching {
    /// Show what is watched.
    Show,
    /// Watch a bucket, too.
    Begin { limit: String, key: String },
    /// Watch nothing any more.
    End,
}

/// A setting of the REPL that is on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    Diff,
    Trace,
    Json,
    Timer,
    Bail,
}

/// Every dot-command with its arguments, and what it does.
pub(crate) const ALL: [(&str, &str); 27] = [
    (".help [PATTERN]", "these commands, and the procedures that match"),
    (".procs", "the procedures"),
    (".limits [NAME [KEY]]", "the limits, a limit's live buckets, one bucket"),
    (".colls", "the collections"),
    (".jobs [STATE]", "the newest jobs, in a state"),
    (".source PROC", "the file that defines a procedure"),
    (".clock", "the time"),
    (".at TIME", "make the clock stand at an instant"),
    (".advance DURATION", "move the clock forward, such as 5m"),
    (".freeze", "make the clock stand where it is"),
    (".real", "the real time again"),
    (".begin", "begin a transaction over several inputs"),
    (".commit", "commit it"),
    (".savepoint [NAME]", "mark a place in it to roll back to"),
    (".rollback [NAME]", "roll it back, all of it or to a savepoint"),
    (".caller [JSON]", "what caller() gives from here on"),
    (".reload", "read the procedures again"),
    (".open PATH", "go over to another store"),
    (".read FILE", "run a session from a file"),
    (".explain INPUT", "run an input, show every limit and document it touched, and roll it back"),
    (".watch [LIMIT KEY]", "a bucket's level, as a bar after each input; `.watch off` ends it"),
    (".diff on|off", "show what each input changed"),
    (".trace on|off", "show every limit and document each input touched"),
    (".json on|off", "outcomes as JSON"),
    (".timer on|off", "show the time each input took"),
    (".bail on|off", "stop a session that is read at its first error"),
    (".exit [CODE]", "leave"),
];

/// The name of a dot-command in [`ALL`].
pub(crate) fn name_of(usage: &str) -> &str {
    usage.split(' ').next().unwrap_or(usage)
}

impl Dot {
    /// Reads a line that begins with a dot. Errors: what is wrong with it.
    pub(crate) fn parse(line: &str) -> Result<Dot, String> {
        let line = line.trim();
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let Some((usage, _)) = ALL.iter().find(|(usage, _)| name_of(usage) == name) else {
            return Err(unknown(name));
        };
        let text = || (!rest.is_empty()).then(|| rest.to_owned());
        let needed = || text().ok_or_else(|| format!("`{name}` needs more: `{usage}`"));
        let alone = |dot: Dot| match rest.is_empty() {
            true => Ok(dot),
            false => Err(format!("`{name}` takes nothing, not `{rest}`")),
        };
        match name {
            ".help" => Ok(Dot::Help(text())),
            ".procs" => alone(Dot::Procs),
            ".limits" => {
                let (limit, key) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                let some = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
                Ok(Dot::Limits { name: some(limit), key: some(key) })
            }
            ".colls" => alone(Dot::Colls),
            ".jobs" => Ok(Dot::Jobs(text().map(|text| jobs::state(&text)).transpose()?)),
            ".source" => Ok(Dot::Source(needed()?)),
            ".clock" => alone(Dot::Clock),
            ".at" => Ok(Dot::At(argument::instant(&needed()?)?)),
            ".advance" => Ok(Dot::Advance(parse_duration(&needed()?).map_err(|why| why.to_string())?)),
            ".freeze" => alone(Dot::Freeze),
            ".real" => alone(Dot::Real),
            ".begin" => alone(Dot::Begin),
            ".commit" => alone(Dot::Commit),
            ".rollback" => Ok(Dot::Rollback(text())),
            ".savepoint" => Ok(Dot::Savepoint(text())),
            ".caller" => match text() {
                None => Ok(Dot::Caller(None)),
                Some(json) => match argument::object(".caller", &json) {
                    Ok(map) => Ok(Dot::Caller(Some(map))),
                    Err(why) => Err(format!("{why:#}")),
                },
            },
            ".reload" => alone(Dot::Reload),
            ".open" => Ok(Dot::Open(needed()?.into())),
            ".read" => Ok(Dot::Read(needed()?)),
            ".explain" => Ok(Dot::Explain(needed()?)),
            ".watch" => match rest.split_once(char::is_whitespace) {
                None if rest.is_empty() => Ok(Dot::Watch(Watching::Show)),
                None if rest == "off" => Ok(Dot::Watch(Watching::End)),
                None => Err(format!("`.watch {rest}` needs a key too: `{usage}`, with `()` for the global one")),
                Some((limit, key)) => {
                    Ok(Dot::Watch(Watching::Begin { limit: limit.to_owned(), key: key.trim().to_owned() }))
                }
            },
            ".diff" => Ok(Dot::Set(Setting::Diff, switch(name, rest)?)),
            ".trace" => Ok(Dot::Set(Setting::Trace, switch(name, rest)?)),
            ".json" => Ok(Dot::Set(Setting::Json, switch(name, rest)?)),
            ".timer" => Ok(Dot::Set(Setting::Timer, switch(name, rest)?)),
            ".bail" => Ok(Dot::Set(Setting::Bail, switch(name, rest)?)),
            ".exit" => match rest {
                "" => Ok(Dot::Exit(None)),
                code => code
                    .parse()
                    .map(|code| Dot::Exit(Some(code)))
                    .map_err(|_| format!("`.exit {code}` is no exit code: use 0 to 255")),
            },
            // Every name of the table has its arm above.
            _ => Err(unknown(name)),
        }
    }

    /// Whether buckets may stand otherwise after it: by the time, or by what is written.
    pub(crate) fn moves_levels(&self) -> bool {
        matches!(self, Dot::At(_) | Dot::Advance(_) | Dot::Real | Dot::Rollback(_))
    }

    /// Its name without the dot, when it answers with data.
    pub(crate) fn answers_as(&self) -> &'static str {
        match self {
            Dot::Help(_) => "help",
            Dot::Procs => "procs",
            Dot::Limits { .. } => "limits",
            Dot::Colls => "colls",
            Dot::Jobs(_) => "jobs",
            Dot::Source(_) => "source",
            Dot::Clock => "clock",
            Dot::At(_) => "at",
            Dot::Advance(_) => "advance",
            Dot::Freeze => "freeze",
            Dot::Real => "real",
            Dot::Begin => "begin",
            Dot::Commit => "commit",
            Dot::Rollback(_) => "rollback",
            Dot::Savepoint(_) => "savepoint",
            Dot::Caller(_) => "caller",
            Dot::Reload => "reload",
            Dot::Open(_) => "open",
            Dot::Read(_) => "read",
            Dot::Explain(_) => "explain",
            Dot::Watch(_) => "watch",
            Dot::Set(Setting::Diff, _) => "diff",
            Dot::Set(Setting::Trace, _) => "trace",
            Dot::Set(Setting::Json, _) => "json",
            Dot::Set(Setting::Timer, _) => "timer",
            Dot::Set(Setting::Bail, _) => "bail",
            Dot::Exit(_) => "exit",
        }
    }
}

fn switch(name: &str, text: &str) -> Result<Option<bool>, String> {
    match text {
        "" => Ok(None),
        "on" => Ok(Some(true)),
        "off" => Ok(Some(false)),
        other => Err(format!("`{name}` takes on or off, not `{other}`")),
    }
}

fn unknown(name: &str) -> String {
    // Who types the beginning of a command means that command.
    let near = ALL
        .iter()
        .map(|(usage, _)| name_of(usage))
        .find(|known| name.len() > 1 && (known.starts_with(name) || name.starts_with(known)));
    match near {
        Some(near) => format!("there is no command `{name}`: did you mean `{near}`?"),
        None => format!("there is no command `{name}`: `.help` lists those there are"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_the_table_is_read() {
        for (usage, _) in ALL {
            let error = Dot::parse(name_of(usage)).err().unwrap_or_default();
            assert!(error.is_empty() || error.contains("needs more"), "{usage}: {error}");
        }
    }

    #[test]
    fn commands_are_read_with_their_arguments() {
        assert_eq!(
            Dot::parse(".limits login [\"a\", 1]"),
            Ok(Dot::Limits { name: Some("login".into()), key: Some("[\"a\", 1]".into()) })
        );
        assert_eq!(Dot::parse(".advance 5m"), Ok(Dot::Advance(Duration::from_secs(300))));
        let (limit, key) = ("api".to_owned(), "[\"a\", 1]".to_owned());
        assert_eq!(Dot::parse(".watch api [\"a\", 1]"), Ok(Dot::Watch(Watching::Begin { limit, key })));
        assert_eq!(Dot::parse(".rollback"), Ok(Dot::Rollback(None)));
        assert_eq!(Dot::parse(".rollback two"), Ok(Dot::Rollback(Some("two".into()))));
        assert_eq!(Dot::parse(".exit 3"), Ok(Dot::Exit(Some(3))));
        assert_eq!(Dot::parse(" .json on "), Ok(Dot::Set(Setting::Json, Some(true))));
        for (line, part) in [
            (".exit 256", "0 to 255"),
            (".adv 5m", "did you mean `.advance`?"),
            (".advance", "needs more"),
            (".advance 5", "5"),
            (".json maybe", "on or off"),
            (".procs x", "takes nothing"),
            (".watch api", "needs a key"),
            (".explain", "needs more"),
            (".caller 5", "JSON object"),
            (".x", ".help"),
        ] {
            let error = Dot::parse(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
