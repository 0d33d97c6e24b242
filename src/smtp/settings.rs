//! Settings of a mail server: where it is, how it is spoken to, who sends.

use std::time::Duration;

/// How a connection to a mail server is kept secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SmtpTls {
    /// It begins in the clear and must be encrypted before anything is said: port 587 unless told otherwise.
    #[default]
    StartTls,
    /// It is encrypted from the first byte: port 465 unless told otherwise.
    Implicit,
    /// It is never encrypted: port 25 unless told otherwise. For a server on this machine, and for tests.
    Off,
}

impl std::str::FromStr for SmtpTls {
    type Err = InvalidSmtp;

    fn from_str(text: &str) -> Result<SmtpTls, InvalidSmtp> {
        match text {
            "starttls" => Ok(SmtpTls::StartTls),
            "implicit" => Ok(SmtpTls::Implicit),
            "off" => Ok(SmtpTls::Off),
            _ => Err(InvalidSmtp {
                field: "tls",
                value: text.to_owned(),
                why: "it is one of starttls, implicit, off".to_owned(),
            }),
        }
    }
}

/// A setting of a mail server that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the mail server's `{field}` cannot be {value:?}: {why}")]
#[non_exhaustive]
pub struct InvalidSmtp {
    /// Which setting.
    pub field: &'static str,
    /// What was given.
    pub value: String,
    /// What is wrong with it.
    pub why: String,
}

/// Where mails are sent and in whose name.
///
/// ```
/// use tollgate::{SmtpSettings, SmtpTls};
/// let settings = SmtpSettings::new("mail.example.com", "Example <no-reply@example.com>")
///     .credentials("no-reply", "secret")
///     .tls(SmtpTls::Implicit);
/// assert!(!format!("{settings:?}").contains("secret"));
/// ```
#[derive(Clone)]
pub struct SmtpSettings {
    pub(super) host: String,
    pub(super) port: Option<u16>,
    pub(super) tls: SmtpTls,
    pub(super) credentials: Option<(String, String)>,
    pub(super) from: String,
    pub(super) timeout: Duration,
}

impl SmtpSettings {
    /// A server and the address that mails come from, as `name@example.com` or `Name <name@example.com>`.
    pub fn new(host: impl Into<String>, from: impl Into<String>) -> SmtpSettings {
        SmtpSettings {
            host: host.into(),
            port: None,
            tls: SmtpTls::default(),
            credentials: None,
            from: from.into(),
            timeout: Duration::from_secs(20),
        }
    }

    /// The server's port, where it is not the usual one of its kind of encryption.
    pub fn port(mut self, port: u16) -> SmtpSettings {
        self.port = Some(port);
        self
    }

    /// How the connection is encrypted: [`SmtpTls::StartTls`] unless told otherwise.
    pub fn tls(mut self, tls: SmtpTls) -> SmtpSettings {
        self.tls = tls;
        self
    }

    /// Who logs in, and with which password; without this nobody does.
    pub fn credentials(mut self, user: impl Into<String>, password: impl Into<String>) -> SmtpSettings {
        self.credentials = Some((user.into(), password.into()));
        self
    }

    /// How long the server may take over each answer: 20 s unless told otherwise.
    pub fn timeout(mut self, timeout: Duration) -> SmtpSettings {
        self.timeout = timeout;
        self
    }

    pub(super) fn port_or_default(&self) -> u16 {
        self.port.unwrap_or(match self.tls {
            SmtpTls::StartTls => 587,
            SmtpTls::Implicit => 465,
            SmtpTls::Off => 25,
        })
    }
}

/// Without the password.
impl std::fmt::Debug for SmtpSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SmtpSettings")
            .field("host", &self.host)
            .field("port", &self.port_or_default())
            .field("tls", &self.tls)
            .field("user", &self.credentials.as_ref().map(|(user, _)| user))
            .field("from", &self.from)
            .field("timeout", &self.timeout)
            .finish()
    }
}
