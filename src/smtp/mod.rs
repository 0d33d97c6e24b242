//! SMTP: the action that sends a job's payload as an e-mail.
//!
//! A mail goes out at least once: a worker that dies after the server took the mail and before the job was completed
//! sends it again, with the same `Message-ID`, by which mail programs recognise the double. What the server refuses for
//! now (4xx, no connection, a wrong password) is tried again later; what it refuses for good (5xx), and a payload that
//! makes no mail, fails at once.

mod letter;
mod settings;

use lettre::transport::smtp::SmtpTransport;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::response::{Category, Detail, Severity};
use lettre::{Address, Transport};

use crate::engine::{Engine, JobAnswer};
use crate::value::Value;

pub use letter::InvalidMail;
pub use settings::{InvalidSmtp, SmtpSettings, SmtpTls};

impl Engine {
    /// Registers the action `smtp`: it sends a job's payload as an e-mail.
    ///
    /// The payload is a map with `to`, `subject` and `text` or `html`; besides, `cc`, `bcc`, `from`, `reply_to`,
    /// `list_unsubscribe` (one link or several) and `list_unsubscribe_post: true`. A mail that the server refuses for
    /// good, and a payload that makes no mail, fail at once; everything else is tried again.
    ///
    /// Errors: an address or a host that cannot be.
    ///
    /// ```
    /// use tollgate::{Engine, SmtpSettings, SmtpTls};
    /// let engine = Engine::builder().memory().open()?;
    /// engine.smtp_action(&SmtpSettings::new("127.0.0.1", "no-reply@example.com").tls(SmtpTls::Off))?;
    /// assert!(engine.smtp_action(&SmtpSettings::new("127.0.0.1", "nobody")).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn smtp_action(&self, settings: &SmtpSettings) -> Result<(), InvalidSmtp> {
        let mailer = Mailer::new(settings)?;
        self.action("smtp", move |job| {
            Ok(match mailer.send(&job.id, &job.payload) {
                Posted::Accepted => JobAnswer::Done,
                Posted::Later(why) => JobAnswer::Retry { after: None, why },
                Posted::Never(why) => JobAnswer::Fail { why },
            })
        });
        Ok(())
    }
}

/// How a mail fared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Posted {
    /// The server has taken it.
    Accepted,
    /// Not now: the same mail may be taken later.
    Later(String),
    /// Never: the same mail will be refused again.
    Never(String),
}

/// A mail server as it is spoken to: connections are kept and shared.
pub(crate) struct Mailer {
    transport: SmtpTransport,
    from: lettre::message::Mailbox,
}

impl Mailer {
    pub(crate) fn new(settings: &SmtpSettings) -> Result<Mailer, InvalidSmtp> {
        let from = settings.from.parse().map_err(|cause: lettre::address::AddressError| InvalidSmtp {
            field: "from",
            value: settings.from.clone(),
            why: cause.to_string(),
        })?;
        let parameters = || {
            TlsParameters::new(settings.host.clone()).map_err(|cause| InvalidSmtp {
                field: "host",
                value: settings.host.clone(),
                why: cause.to_string(),
            })
        };
        let tls = match settings.tls {
            SmtpTls::Off => Tls::None,
            SmtpTls::StartTls => Tls::Required(parameters()?),
            SmtpTls::Implicit => Tls::Wrapper(parameters()?),
        };
        let mut transport = SmtpTransport::builder_dangerous(&settings.host)
            .port(settings.port_or_default())
            .timeout(Some(settings.timeout))
            .tls(tls);
        if let Some((user, password)) = &settings.credentials {
            transport = transport.credentials(Credentials::new(user.clone(), password.clone()));
        }
        Ok(Mailer { transport: transport.build(), from })
    }

    /// Sends the mail that `payload` describes, as job `id`.
    pub(crate) fn send(&self, id: &str, payload: &Value) -> Posted {
        let letter = match letter::write(id, payload, &self.from) {
            Ok(letter) => letter,
            Err(invalid) => return Posted::Never(invalid.to_string()),
        };
        match self.transport.send(&letter) {
            Ok(_) => Posted::Accepted,
            Err(cause) => {
                let reason = with_causes(&cause);
                match cause.is_permanent() && !is_about_us(cause.status()) {
                    true => Posted::Never(reason),
                    false => Posted::Later(reason),
                }
            }
        }
    }
}

/// Whether a refusal for good speaks of how we logged in and not of the mail (RFC 4954: 530, 534, 535, 538): the mail
/// is sound and goes out when the settings are put right.
fn is_about_us(code: Option<lettre::transport::smtp::response::Code>) -> bool {
    let login = [Detail::Zero, Detail::Four, Detail::Five, Detail::Eight];
    code.is_some_and(|code| {
        code.severity == Severity::PermanentNegativeCompletion
            && code.category == Category::Unspecified3
            && login.contains(&code.detail)
    })
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        // The library's own words often end in their cause.
        let words = next.to_string();
        if !text.ends_with(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = next.source();
    }
    text
}

/// The domain that message ids are of: the sender's.
fn domain_of(address: &Address) -> &str {
    address.domain()
}
