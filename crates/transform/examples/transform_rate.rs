//! Measures the cost of five steps on an access record, next to the cost of its check, and the cost of hostile steps
//! until they are stopped.
//!
//! `cargo run --release -p transform --example transform_rate`

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use transform::{Context, Scratch, StepSpec, Tables, Transform, TransformOutcome};

const ACCESS: &str = r#"{"type":"access","time":"2026-11-02T10:05:03+00:00","client":"192.0.2.216","method":"GET","path":"/reports/quarterly/2026/images/figure-03-overview.png","protocol":"HTTP/1.1","status":200,"bytes":203023,"referrer":null,"agent":"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}"#;
const FIVE: &str = r#"[
    {"drop": "/referrer", "when": "referrer == null"},
    {"set": "/slow", "to": "bytes > 1000000"},
    {"rename": "/agent", "to": "user_agent"},
    {"lower": "/method"},
    {"hash": "/client"}
]"#;
const SINGLE: [&str; 16] = [
    r#"[{"keep": "/nothing", "when": "false"}]"#,
    r#"[{"drop": "/nothing"}]"#,
    r#"[{"drop": "/referrer"}]"#,
    r#"[{"drop": "/referrer", "when": "referrer == null"}]"#,
    r#"[{"set": "/slow", "to": "bytes > 1000000"}]"#,
    r#"[{"set": "/slow", "value": true}]"#,
    r#"[{"rename": "/agent", "to": "user_agent"}]"#,
    r#"[{"keep": ["/time", "/path", "/status"]}]"#,
    r#"[{"lower": "/method"}]"#,
    r#"[{"hash": "/client"}]"#,
    r#"[{"coerce": "/time", "as": "time"}]"#,
    r#"[{"parse": "/agent", "as": "user_agent", "to": "/program"}]"#,
    r#"[{"redact": "/path", "pattern": "[0-9]{4}"}]"#,
    r#"[{"extract": "/path", "pattern": "^/(?<area>[a-z]+)/"}]"#,
    r#"[{"filter": "status < 500"}]"#,
    r#"[{"sample": 1, "by": "/client"}]"#,
];
const ROUND: Duration = Duration::from_millis(4);
const ROUNDS: usize = 150;

fn main() -> Result<(), Box<dyn Error>> {
    let check = best(|| json::check(black_box(ACCESS).as_bytes()).is_ok());
    println!("json::check of {} bytes                          {check:9.1} ns", ACCESS.len());
    let five = cost(FIVE)?;
    println!("five steps                                         {five:9.1} ns, {:.2} of the check", five / check);
    for steps in SINGLE {
        println!("{steps:50} {:9.1} ns", cost(steps)?);
    }
    hostile()
}

fn compile(steps: &str) -> Result<Transform, Box<dyn Error>> {
    let specs: Vec<StepSpec> = serde_json::from_str(steps)?;
    Transform::compile(&specs, &Tables::default()).map_err(|mistakes| format!("{mistakes:?}").into())
}

fn cost(steps: &str) -> Result<f64, Box<dyn Error>> {
    let transform = compile(steps)?;
    let (mut windows, mut scratch) = (transform.windows(1), Scratch::default());
    Ok(best(|| {
        let outcome = transform.run(black_box(ACCESS), &Context::UNKNOWN, &mut windows, &mut scratch);
        matches!(outcome, Ok(TransformOutcome::Unchanged | TransformOutcome::Changed(_)))
    }))
}

/// Steps and documents that are designed to cost time.
fn hostile() -> Result<(), Box<dyn Error>> {
    let bits: String =
        (0_u32..400_000).map(|bit| if bit.wrapping_mul(2_654_435_769) >> 31 == 0 { '0' } else { '1' }).collect();
    let members: String = (0..60_000).map(|number| format!("\"member{number}\":1,")).collect();
    let names: String = (0..20_000).map(|number| format!("\"a.b.c.d{number}.e.f.g\":1,")).collect();
    let list = "{},".repeat(300_000);
    let deep = format!("{}1{}", "{\"aaaaaaaa\":".repeat(120), "}".repeat(120));
    let documents = [
        format!("\"{bits}\""),
        format!("{{{members}\"z\":1}}"),
        format!("{{{names}\"z\":1}}"),
        format!("[{list}1]"),
        format!("[{deep}{}]", format!(",{deep}").repeat(600)),
    ];
    let steps = [
        r#"[{"redact": "", "pattern": "[01]*1[01]{12}x"}]"#.to_owned(),
        r#"[{"replace": "", "pattern": ".*[^01]|[01]", "with": ""}]"#.to_owned(),
        r#"[{"extract": "", "pattern": "(?<a>(a|b|ab)*[01]{40}x)"}]"#.to_owned(),
        many(|number| format!(r#"{{"set": "/new{number}", "to": "member1 == 1"}}"#)),
        many(|number| format!(r#"{{"copy": "", "to": "/new{number}"}}"#)),
        many(|_| r#"{"set": "/x", "to": "payload == payload"}"#.to_owned()),
        many(|_| r#"{"set": "/-", "to": "size(payload)"}"#.to_owned()),
        r#"[{"flatten": "", "arrays": true}]"#.to_owned(),
        r#"[{"unflatten": ""}]"#.to_owned(),
        r#"[{"explode": ""}]"#.to_owned(),
    ];
    for steps in &steps {
        let transform = compile(steps)?;
        let (mut windows, mut scratch) = (transform.windows(1), Scratch::default());
        let costs = documents.each_ref().map(|document| {
            let begun = Instant::now();
            let _ = black_box(transform.run(document, &Context::UNKNOWN, &mut windows, &mut scratch));
            format!("{:7.1}", begun.elapsed().as_secs_f64() * 1e3)
        });
        println!("{:60.60} {} ms", steps, costs.join(" "));
    }
    Ok(())
}

/// As many steps as there may be.
fn many(step: impl Fn(usize) -> String) -> String {
    format!("[{}]", (0..100).map(step).collect::<Vec<_>>().join(","))
}

/// Nanoseconds of one run, in the best round.
fn best(mut run: impl FnMut() -> bool) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let (begun, mut runs) = (Instant::now(), 0_u32);
        while begun.elapsed() < ROUND {
            for _ in 0..100 {
                assert!(black_box(run()), "it goes on");
            }
            runs += 100;
        }
        best = best.min(begun.elapsed().as_secs_f64() * 1e9 / f64::from(runs));
    }
    best
}
