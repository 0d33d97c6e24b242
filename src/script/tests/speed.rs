//! Speed, measured by hand: `cargo test --lib script::tests::speed -- --ignored --nocapture`.

use std::time::Instant;

use super::*;

#[test]
#[ignore = "measures time; run it by hand on a quiet machine"]
fn calls() {
    let program = program(
        "const L = fixed_window(\"l\", 1000000, \"1m\");\nfn trivial(x) { x }\nfn add(a, b) { if a < b { a + b } else { b } }\nfn declared(k) { L.take(k).allowed }\nfn check_rate(key, max, window) { let d = fixed_window(\"check_rate\", max, seconds(window)).take(key); #{ allowed: d.allowed, limit: d.limit, remaining: d.remaining, retry_after: d.retry_after, reset_at: d.reset_at } }",
    );
    for (name, arguments) in [
        ("trivial", vec![Value::Int(1)]),
        ("add", vec![Value::Int(1), Value::Int(2)]),
        ("declared", vec![Value::from("k")]),
        ("check_rate", vec![Value::from("k"), Value::Int(1_000_000_000), Value::Int(60)]),
    ] {
        let rounds = 100_000_u32;
        let mut call = call();
        let begun = Instant::now();
        for _ in 0..rounds {
            let finished = program.run(name, Arguments::Positional(arguments.clone()), call);
            assert!(matches!(finished.ending, Ending::Returned(_)), "{}", line(&finished.ending));
            call = finished.call;
            call.set_deadline(crate::time::Deadline::after(std::time::Duration::from_secs(1)));
        }
        println!("{name}: {:.0} ns", begun.elapsed().as_nanos() as f64 / f64::from(rounds));
    }
}
