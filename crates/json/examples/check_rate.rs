//! Measures the cost of checking a record, next to serde_json's bare `IgnoredAny` in the same run.
//!
//! `cargo run --release -p json --example check_rate [FILE.ndjson]`

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use json::batch::{Form, Splitter};
use serde::de::IgnoredAny;

const ACCESS: &str = r#"{"type":"access","time":"2026-11-02T10:05:03+00:00","client":"192.0.2.216","method":"GET","path":"/reports/quarterly/2026/images/figure-03-overview.png","protocol":"HTTP/1.1","status":200,"bytes":203023,"referrer":"https://www.example.org/reports/quarterly/2026/","agent":"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}"#;
const JOB: &str = r#"{"data":"{'job_id':'0123456789ab','container_id':'ba9876543210','status':'Success: process exited with code 0.'}"}"#;
const ROUND: Duration = Duration::from_millis(50);
const ROUNDS: usize = 12;
const CHUNK_BYTES: usize = 64 * 1024;

fn main() -> std::io::Result<()> {
    match std::env::args().nth(1) {
        Some(file) => measure(&file, &std::fs::read(&file)?),
        None => {
            measure("an access record", &repeated(ACCESS));
            measure("a job status", &repeated(JOB));
        }
    }
    Ok(())
}

fn repeated(record: &str) -> Vec<u8> {
    format!("{record}\n").repeat(3_000).into_bytes()
}

fn measure(name: &str, body: &[u8]) {
    let lines: Vec<&[u8]> = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    println!("{name}: {} records of {} bytes", lines.len(), body.len() / lines.len());
    let mut best = [f64::INFINITY; 4];
    for _ in 0..ROUNDS {
        let turns = [
            nanoseconds(lines.len(), || {
                lines.iter().filter(|line| serde_json::from_slice::<IgnoredAny>(line).is_ok()).count()
            }),
            nanoseconds(lines.len(), || lines.iter().filter(|line| std::str::from_utf8(line).is_ok()).count()),
            nanoseconds(lines.len(), || lines.iter().filter(|line| json::check(line).is_ok()).count()),
            nanoseconds(lines.len(), || split(body)),
        ];
        best = std::array::from_fn(|at| best[at].min(turns[at]));
    }
    let labels = ["IgnoredAny", "from_utf8", "json::check", "split and check"];
    for (label, cost) in labels.iter().zip(best) {
        println!("  {label:16} {cost:7.1} ns a record, {:.2} of IgnoredAny", cost / best[0]);
    }
}

fn split(body: &[u8]) -> usize {
    let mut taken = 0;
    let mut splitter = Splitter::new(Form::Lines);
    let mut sink = |item: json::batch::Item<'_>| taken += usize::from(black_box(item.record).is_ok());
    let ended = body.chunks(CHUNK_BYTES).try_for_each(|chunk| splitter.push(chunk, &mut sink));
    black_box(ended.and_then(|()| splitter.finish(&mut sink)).is_ok());
    taken
}

fn nanoseconds(records: usize, mut pass: impl FnMut() -> usize) -> f64 {
    let start = Instant::now();
    let mut passes = 0_u32;
    while start.elapsed() < ROUND {
        assert_eq!(black_box(pass()), records, "every record is taken");
        passes += 1;
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(passes) / records as f64
}
