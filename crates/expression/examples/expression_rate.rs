//! Measures the cost of conditions on an access record, next to the cost of its check, and the cost of hostile ones
//! until they are stopped.
//!
//! `cargo run --release -p expression --example expression_rate`

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use expression::Expression;

const ACCESS: &str = r#"{"type":"access","time":"2026-11-02T10:05:03+00:00","client":"192.0.2.216","method":"GET","path":"/reports/quarterly/2026/images/figure-03-overview.png","protocol":"HTTP/1.1","status":200,"bytes":203023,"referrer":"https://www.example.org/reports/quarterly/2026/","agent":"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}"#;
const CONDITIONS: [&str; 5] = [
    "true",
    "status >= 500",
    "bytes > 1000000 && status == 200",
    "method in ['GET', 'HEAD'] && path.endsWith('.png') && !agent.contains('Bot')",
    r"path.matches('^/reports/\\w+/20\\d\\d/')",
];
const HOSTILE: [&str; 9] = [
    "l.map(a, l.map(b, l.map(c, a + b + c)))",
    "l.all(a, l.all(b, a == b || a > b || b > a))",
    "l.exists(a, l == l && false)",
    "l.exists(a, payload.l[9999] == 2)",
    "l.exists(a, size(payload.o) == 0)",
    "l.map(a, s + s)",
    "l.exists(a, s.contains('00x'))",
    "l.exists(a, s.matches('[01]*1[01]{30}x'))",
    "l.exists(a, t.matches('^(a|b|ab)*[01]{40}x'))",
];
const ROUND: Duration = Duration::from_millis(100);
const ROUNDS: usize = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let check = best(|| json::check(black_box(ACCESS).as_bytes()).is_ok());
    println!("json::check                      {check:9.1} ns");
    for text in CONDITIONS {
        let expression: Expression = text.parse()?;
        let cost = best(|| expression.holds(black_box(ACCESS)).is_ok());
        println!("{text:32} {cost:9.1} ns");
    }
    let list = "1,".repeat(10_000);
    let members: String = (0..10_000).map(|number| format!("\"member{number}\":1,")).collect();
    let bits: String =
        (0_u32..100_000).map(|bit| if bit.wrapping_mul(2_654_435_769) >> 31 == 0 { '0' } else { '1' }).collect();
    let text = "ab".repeat(500);
    let document = format!(r#"{{"l":[{list}0],"o":{{{members}"z":1}},"s":"{bits}","t":"{text}"}}"#);
    for text in HOSTILE {
        let expression: Expression = text.parse()?;
        let begun = Instant::now();
        let ended = expression.holds(&document).map_err(|error| error.reason());
        println!("{text:44} {:7.1} ms  {ended:?}", begun.elapsed().as_secs_f64() * 1e3);
    }
    Ok(())
}

/// Nanoseconds of one run, in the best round.
fn best(mut run: impl FnMut() -> bool) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let (begun, mut runs) = (Instant::now(), 0_u32);
        while begun.elapsed() < ROUND {
            for _ in 0..100 {
                assert!(black_box(run()), "it has a value");
            }
            runs += 100;
        }
        best = best.min(begun.elapsed().as_secs_f64() * 1e9 / f64::from(runs));
    }
    best
}
