//! E-mails, through a real mail server: what goes over the wire, and what each answer makes of the job.
//!
//! The server is aiosmtpd, a Python package: `pip install aiosmtpd --target target/python`. Where it is missing the
//! tests say so and pass.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tollgate::{Engine, Job, JobOptions, JobState, ManualClock, SmtpSettings, SmtpTls, Timestamp, Value};

/// Keeps every mail as a file, and answers by recipient: `later@` 451, `never@` 550, and `twice@` 451 for what it has
/// taken for the first time. `ada` logs in with `secret`.
const SERVER: &str = r#"
import asyncio, os, sys
from aiosmtpd.smtp import SMTP, AuthResult

class Handler:
    def __init__(self, folder):
        self.folder, self.seen = folder, 0

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("later@"):
            return "451 4.2.0 the mailbox is busy"
        if address.startswith("never@"):
            return "550 5.1.1 nobody has this name"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        self.seen += 1
        path = os.path.join(self.folder, f"{self.seen}.eml")
        first = not any(os.path.basename(name).startswith("twice") for name in os.listdir(self.folder))
        with open(path, "wb") as mail:
            mail.write(envelope.original_content)
        if envelope.rcpt_tos[0].startswith("twice@") and first:
            open(os.path.join(self.folder, "twice"), "w").close()
            return "451 4.3.0 once more please"
        return "250 taken"

def authenticate(server, session, envelope, mechanism, data):
    if data.login == b"ada" and data.password == b"secret":
        return AuthResult(success=True)
    return AuthResult(success=False, handled=False)

async def main():
    handler = Handler(sys.argv[1])
    def protocol():
        return SMTP(handler, hostname="localhost", authenticator=authenticate, auth_require_tls=False)
    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"#;

struct Server {
    child: Child,
    port: u16,
    folder: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn python() -> Command {
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", Path::new(env!("CARGO_MANIFEST_DIR")).join("target/python"));
    command
}

impl Server {
    /// Starts one; none, with the reason printed, where this machine has none to start.
    fn start() -> Option<Server> {
        let has_it = python().args(["-c", "import aiosmtpd"]).stderr(Stdio::null()).status();
        match has_it {
            Err(_) => println!("skipped: there is no python3"),
            Ok(status) if !status.success() => {
                println!("skipped: there is no aiosmtpd: pip install aiosmtpd --target target/python");
            }
            Ok(_) => {
                let folder = tempfile::tempdir().unwrap();
                let script = folder.path().join("server.py");
                std::fs::write(&script, SERVER).unwrap();
                let mails = folder.path().join("mails");
                std::fs::create_dir(&mails).unwrap();
                let mut child = python().arg(script).arg(mails).stdout(Stdio::piped()).spawn().unwrap();
                let mut line = String::new();
                BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
                return Some(Server { child, port: line.trim().parse().unwrap(), folder });
            }
        }
        None
    }

    /// The mails it was given, in order, with the lines of folded headers joined.
    fn mails(&self) -> Vec<String> {
        let path = |n: usize| -> PathBuf { self.folder.path().join(format!("mails/{n}.eml")) };
        (1..).map_while(|n| std::fs::read_to_string(path(n)).ok()).map(|mail| mail.replace("\r\n ", " ")).collect()
    }

    fn settings(&self) -> SmtpSettings {
        settings(self.port)
    }
}

fn settings(port: u16) -> SmtpSettings {
    SmtpSettings::new("127.0.0.1", "Example <no-reply@example.com>")
        .port(port)
        .tls(SmtpTls::Off)
        .timeout(Duration::from_secs(60))
}

/// A port that nobody listens on.
fn dead_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn mail_to(to: &str) -> Value {
    let text = format!(
        r#"{{"to": "{to}", "subject": "hello", "text": "plain words", "html": "<p>marked words</p>",
            "list_unsubscribe": "https://example.com/u?id=1", "list_unsubscribe_post": true}}"#
    );
    Value::from_json(&text).unwrap()
}

fn message_id(mail: &str) -> &str {
    mail.lines().find(|line| line.starts_with("Message-ID: ")).unwrap()
}

/// A store and procedures of its own, worked on by the built tool.
struct Tool {
    folder: TempDir,
    port: u16,
}

impl Tool {
    fn new(port: u16) -> Tool {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("scripts")).unwrap();
        let text = r#"fn mail(payload) { enqueue("smtp", payload, #{ max_attempts: 3 }) }"#;
        std::fs::write(folder.path().join("scripts/mail.rhai"), text).unwrap();
        Tool { folder, port }
    }

    fn run(&self, words: &[&str]) -> String {
        let run = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(words)
            .current_dir(&self.folder)
            .env_clear()
            .envs(std::env::vars().filter(|(name, _)| !name.starts_with("TOLLGATE")))
            .env("TOLLGATE_SMTP_HOST", "127.0.0.1")
            .env("TOLLGATE_SMTP_PORT", self.port.to_string())
            .env("TOLLGATE_SMTP_TLS", "off")
            .env("TOLLGATE_SMTP_FROM", "Example <no-reply@example.com>")
            .output()
            .unwrap();
        let error = String::from_utf8(run.stderr).unwrap();
        assert!(run.status.success(), "{words:?}: {error}");
        String::from_utf8(run.stdout).unwrap().trim().to_owned()
    }

    fn mail(&self, payload: &Value) -> String {
        let arguments = Value::Array(vec![payload.clone()]).to_json();
        self.run(&["call", "mail", "--args", &arguments]).trim_matches('"').to_owned()
    }
}

#[test]
fn the_tool_sends_what_a_procedure_enqueued() {
    let Some(server) = Server::start() else { return };
    let tool = Tool::new(server.port);
    let id = tool.mail(&mail_to("Ada <ada@example.org>"));
    assert_eq!(tool.run(&["work", "--once"]), "claimed 1 succeeded 1 failed 0 retried 0 skipped 0");
    assert_eq!(tool.run(&["work", "--once"]), "claimed 0 succeeded 0 failed 0 retried 0 skipped 0");
    let mails = server.mails();
    assert_eq!(mails.len(), 1);
    for part in [
        "From: Example <no-reply@example.com>\r\n",
        "To: Ada <ada@example.org>\r\n",
        "Subject: hello\r\n",
        "List-Unsubscribe: <https://example.com/u?id=1>\r\n",
        "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n",
        "multipart/alternative",
        "plain words",
        "<p>marked words</p>",
    ] {
        assert!(mails[0].contains(part), "{part} in {}", mails[0]);
    }
    assert_eq!(message_id(&mails[0]), format!("Message-ID: <{id}@example.com>"));
}

#[test]
fn the_tool_tries_again_with_the_same_message_id_and_gives_up_what_is_refused_for_good() {
    let Some(server) = Server::start() else { return };
    let tool = Tool::new(server.port);
    let twice = tool.mail(&mail_to("twice@example.org"));
    assert_eq!(tool.run(&["work", "--once"]), "claimed 1 succeeded 0 failed 0 retried 1 skipped 0");
    assert!(tool.run(&["jobs", "show", &twice]).contains("(451): 4.3.0 once more please"));
    assert_eq!(tool.run(&["jobs", "retry", &twice]), format!("{twice} retried"));
    assert_eq!(tool.run(&["work", "--once"]), "claimed 1 succeeded 1 failed 0 retried 0 skipped 0");
    let mails = server.mails();
    assert_eq!(mails.len(), 2);
    assert_eq!(message_id(&mails[0]), message_id(&mails[1]));
    let never = tool.mail(&mail_to("never@example.org"));
    let invalid = tool.mail(&Value::from_json(r#"{"to": "ada@example.org"}"#).unwrap());
    let summary = r#"{"claimed":2,"succeeded":0,"failed":2,"retried":0,"skipped":0}"#;
    assert_eq!(tool.run(&["work", "--once", "--json"]), summary);
    assert!(tool.run(&["jobs", "show", &never]).contains("(550): 5.1.1 nobody has this name"));
    assert!(tool.run(&["jobs", "show", &invalid]).contains("the payload makes no mail: `subject` is missing"));
}

#[test]
fn without_a_server_the_tool_tries_again() {
    let tool = Tool::new(dead_port());
    tool.mail(&mail_to("ada@example.org"));
    assert_eq!(tool.run(&["work", "--once"]), "claimed 1 succeeded 0 failed 0 retried 1 skipped 0");
}

/// Does one job in the library, and returns how it stands.
fn done(settings: &SmtpSettings, payload: &Value) -> Job {
    let engine = Engine::builder().memory().open().unwrap();
    engine.smtp_action(settings).unwrap();
    let id = engine.enqueue("smtp", payload, &JobOptions::new()).unwrap();
    assert_eq!(engine.work_once(10).unwrap().claimed, 1);
    engine.job(&id).unwrap().unwrap()
}

#[test]
fn each_answer_makes_of_a_job_what_it_should() {
    let Some(server) = Server::start() else { return };
    let plain = server.settings();
    let ada = || mail_to("ada@example.org");
    for (settings, payload, state, words) in [
        (plain.clone(), ada(), JobState::Succeeded, ""),
        (plain.clone().credentials("ada", "secret"), ada(), JobState::Succeeded, ""),
        (plain.clone().credentials("ada", "hunter2"), ada(), JobState::Retrying, "535"),
        (plain.clone(), mail_to("later@example.org"), JobState::Retrying, "(451): 4.2.0 the mailbox is busy"),
        (plain.clone(), mail_to("never@example.org"), JobState::Failed, "(550): 5.1.1 nobody has this name"),
        (plain.clone(), mail_to("nobody"), JobState::Failed, "`to` is no address"),
        // Who demands encryption of a server that has none is not served in the clear.
        (plain.tls(SmtpTls::StartTls), ada(), JobState::Retrying, "STARTTLS"),
        (settings(dead_port()), ada(), JobState::Retrying, "onnection"),
    ] {
        let job = done(&settings, &payload);
        let fault = job.last_fault().map_or("", |fault| &fault.message);
        assert!(job.state == state && fault.contains(words), "{state}, {words}: {}, {fault}", job.state);
        assert!(!fault.contains("hunter2"), "{fault}");
    }
    assert_eq!(server.mails().len(), 2);
}

#[test]
fn attempts_of_the_library_carry_one_message_id() {
    let Some(server) = Server::start() else { return };
    let clock = ManualClock::at(Timestamp::from_millis(1_000));
    let engine = Engine::builder().memory().clock(clock.clone()).open().unwrap();
    engine.smtp_action(&server.settings()).unwrap();
    engine.enqueue("smtp", mail_to("twice@example.org"), &JobOptions::new()).unwrap();
    assert_eq!(engine.work_once(10).unwrap().retried, 1);
    assert_eq!(engine.work_once(10).unwrap().claimed, 0);
    clock.advance(Duration::from_secs(70));
    assert_eq!(engine.work_once(10).unwrap().succeeded, 1);
    let mails = server.mails();
    assert_eq!(message_id(&mails[0]), message_id(&mails[1]));
}
