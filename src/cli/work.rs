//! `tollgate work`: does jobs as they become due.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::FalseyValueParser;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tollgate::{Engine, WorkSummary, WorkerOptions};

use super::console::Console;
use super::exit::Exit;
use super::place::{Need, Place};

/// How often the live line is drawn anew.
const REDRAW: Duration = Duration::from_millis(250);

/// Does jobs as they become due, until Ctrl-C; then the jobs that run come to their end.
///
/// Procedures are done by themselves. Of actions there are `log`, which prints each job as a line of JSON, and, in a
/// binary built with the feature `smtp`, `smtp`, once a host is named. Jobs for others wait.
#[derive(Args)]
pub(crate) struct Work {
    /// Do what is due now, print the summary, and end.
    #[arg(long, env = "TOLLGATE_ONCE", value_parser = FalseyValueParser::new())]
    once: bool,
    /// Serve this queue; may be given several times [default: every queue].
    #[arg(long, value_name = "NAME", env = "TOLLGATE_QUEUE", value_delimiter = ',')]
    queue: Vec<String>,
    /// Jobs done at the same time.
    #[arg(long, value_name = "N", env = "TOLLGATE_THREADS", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// Jobs that a thread claims at once.
    #[arg(long, value_name = "N", env = "TOLLGATE_BATCH", default_value = "10", value_parser = clap::value_parser!(u16).range(1..=1000))]
    batch: u16,
    #[cfg(feature = "smtp")]
    #[command(flatten)]
    smtp: smtp::Flags,
}

#[derive(Serialize)]
struct SummaryRecord {
    claimed: u64,
    succeeded: u64,
    failed: u64,
    retried: u64,
    skipped: u64,
}

fn line(summary: WorkSummary) -> String {
    let WorkSummary { claimed, succeeded, failed, retried, skipped, .. } = summary;
    format!("claimed {claimed} succeeded {succeeded} failed {failed} retried {retried} skipped {skipped}")
}

impl Work {
    pub(crate) fn run(self, place: &Place, console: &mut Console) -> Result<Exit> {
        let engine = place.open(Need::Procedures)?;
        engine.log_action(std::io::stdout());
        #[cfg(feature = "smtp")]
        self.smtp.register(&engine)?;
        let mut options = WorkerOptions::new().threads(self.threads.into()).batch(self.batch.into());
        for queue in &self.queue {
            options = options.queue(queue);
        }
        let summary = if self.once { engine.work_due(&options)? } else { until_stopped(&engine, options, console)? };
        engine.close()?;
        if console.json {
            let WorkSummary { claimed, succeeded, failed, retried, skipped, .. } = summary;
            console.record(&SummaryRecord { claimed, succeeded, failed, retried, skipped })?;
        } else {
            console.line(line(summary))?;
        }
        Ok(Exit::Returned)
    }
}

fn until_stopped(engine: &Engine, options: WorkerOptions, console: &Console) -> Result<WorkSummary> {
    let (stop, stopped) = channel();
    on_stop(move || {
        // A second one while the first is being obeyed has nobody to hear it.
        let _ = stop.send(());
    })?;
    let worker = engine.spawn_worker(options)?;
    // Hidden where stderr is no terminal.
    let bar = ProgressBar::new_spinner().with_style(ProgressStyle::with_template("{spinner} {msg}")?);
    console.note("working; Ctrl-C lets the jobs that run come to their end");
    while stopped.recv_timeout(REDRAW) == Err(RecvTimeoutError::Timeout) {
        bar.set_message(line(worker.summary()));
        bar.tick();
    }
    bar.finish_and_clear();
    Ok(worker.shutdown()?)
}

/// Calls `hear` at Ctrl-C, and when a service manager asks the process to end.
#[cfg(unix)]
fn on_stop(hear: impl Fn() + Send + 'static) -> Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).context("cannot listen for signals")?;
    std::thread::spawn(move || signals.forever().for_each(|_| hear()));
    Ok(())
}

/// Calls `hear` at Ctrl-C.
#[cfg(not(unix))]
fn on_stop(hear: impl Fn() + Send + 'static) -> Result<()> {
    ctrlc::set_handler(hear).context("cannot listen for Ctrl-C")
}

#[cfg(feature = "smtp")]
mod smtp {
    //! Flags of the action `smtp`.

    use clap::Args;
    use tollgate::{Engine, SmtpSettings, SmtpTls};

    use super::super::exit::usage;

    /// How mails are sent.
    #[derive(Args)]
    #[command(next_help_heading = "Mail")]
    pub(super) struct Flags {
        /// The mail server; without one, jobs for `smtp` wait.
        #[arg(long, value_name = "HOST", env = "TOLLGATE_SMTP_HOST", requires = "smtp_from")]
        smtp_host: Option<String>,
        /// Its port [default: 587 with starttls, 465 with implicit, 25 with off].
        #[arg(long, value_name = "PORT", env = "TOLLGATE_SMTP_PORT")]
        smtp_port: Option<u16>,
        /// How the connection is encrypted: starttls, implicit, or off for a server on this machine.
        #[arg(long, value_name = "HOW", env = "TOLLGATE_SMTP_TLS", default_value = "starttls")]
        smtp_tls: SmtpTls,
        /// Who logs in.
        #[arg(long, value_name = "NAME", env = "TOLLGATE_SMTP_USER", requires = "smtp_password")]
        smtp_user: Option<String>,
        /// The password; better in the environment, where no list of processes shows it.
        #[arg(long, value_name = "TEXT", env = "TOLLGATE_SMTP_PASSWORD", hide_env_values = true)]
        smtp_password: Option<String>,
        /// The address that mails come from.
        #[arg(long, value_name = "ADDRESS", env = "TOLLGATE_SMTP_FROM")]
        smtp_from: Option<String>,
    }

    impl Flags {
        pub(super) fn register(&self, engine: &Engine) -> anyhow::Result<()> {
            let (Some(host), Some(from)) = (&self.smtp_host, &self.smtp_from) else { return Ok(()) };
            let mut settings = SmtpSettings::new(host, from).tls(self.smtp_tls);
            if let Some(port) = self.smtp_port {
                settings = settings.port(port);
            }
            if let (Some(user), Some(password)) = (&self.smtp_user, &self.smtp_password) {
                settings = settings.credentials(user, password);
            }
            engine.smtp_action(&settings).map_err(|invalid| usage(invalid.to_string()))
        }
    }
}
