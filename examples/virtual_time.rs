//! An hour in a blink: the engine reads the clock that the host gives it.
//!
//! `cargo run --example virtual_time`

use std::time::Duration;

use tollgate::{Engine, Error, ManualClock, Outcome, Timestamp, Value};

fn main() -> Result<(), Error> {
    let clock = ManualClock::at(Timestamp::EPOCH);
    let engine = Engine::builder().memory().scripts("scripts").clock(clock.clone()).action_elsewhere("smtp").open()?;
    let mut admitted = 0;
    for _minute in 0..60 {
        let outcome: Outcome<Value> = engine.call("resend_verification", &("u1", "ada@example.com"))?;
        match outcome {
            Outcome::Returned(_) => {
                admitted += 1;
                println!("{} admitted", engine.now());
            }
            Outcome::Refused(refusal) => {
                println!("{} wait {:?}", engine.now(), refusal.retry_after.unwrap_or_default())
            }
        }
        clock.advance(Duration::from_secs(60));
    }
    // One in five minutes and five an hour: the fifth is at minute twenty.
    assert_eq!(admitted, 5);
    Ok(())
}
