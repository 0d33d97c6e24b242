//! A host in twenty lines: a procedure decides, the host acts on the outcome and does the jobs that it enqueued.
//!
//! `cargo run --example embed`

use tollgate::{Engine, Error, JobAnswer, Outcome};

#[derive(serde::Serialize)]
struct Email<'a> {
    user_id: &'a str,
    to: &'a str,
    subject: &'a str,
    body: &'a str,
}

#[derive(serde::Deserialize)]
struct Sent {
    sent_in_window: i64,
}

fn main() -> Result<(), Error> {
    let engine = Engine::builder()
        .memory()
        .scripts("scripts")
        .action("smtp", |job| {
            println!("sending {}", job.payload);
            Ok(JobAnswer::Done)
        })
        .open()?;
    let email = Email { user_id: "u1", to: "ada@example.com", subject: "hello", body: "hello" };
    for _ in 0..11 {
        match engine.call::<Sent>("send_email", &email)? {
            Outcome::Returned(sent) => println!("queued, {} in this hour", sent.sent_in_window),
            Outcome::Refused(refusal) => println!("refused: {} (wait {:?})", refusal.message(), refusal.retry_after),
        }
    }
    let summary = engine.work_once(100)?;
    println!("{} mails for as many permits", summary.succeeded);
    Ok(())
}
