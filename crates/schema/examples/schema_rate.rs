//! Measures the cost of a schema on an access record, in addition to the JSON check, and the cost of hostile schemas and documents until
//! they are stopped.
//!
//! `cargo run --release -p schema --example schema_rate`

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use schema::{Documents, Schema, SchemaOptions};

const ACCESS: &str = r#"{"type":"access","time":"2026-11-02T10:05:03+00:00","client":"192.0.2.216","method":"GET","path":"/reports/quarterly/2026/images/figure-03-overview.png","protocol":"HTTP/1.1","status":200,"bytes":203023,"referrer":"https://www.example.org/reports/quarterly/2026/","agent":"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}"#;
const SCHEMA: &str = r#"{
  "type": "object",
  "required": ["type", "time", "client", "method", "path", "status", "bytes"],
  "properties": {
    "type": {"const": "access"},
    "time": {"type": "string", "format": "date-time"},
    "client": {"type": "string", "maxLength": 45},
    "method": {"enum": ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]},
    "path": {"type": "string", "pattern": "^/"},
    "protocol": {"type": "string"},
    "status": {"type": "integer", "minimum": 100, "maximum": 599},
    "bytes": {"type": "integer", "minimum": 0},
    "referrer": {"type": ["string", "null"]},
    "agent": {"type": ["string", "null"]}
  },
  "additionalProperties": false
}"#;
const ITERATION_TIME: Duration = Duration::from_millis(10);
const ITERATIONS: usize = 80;

fn main() -> Result<(), Box<dyn Error>> {
    let check = best(|| json::check(black_box(ACCESS).as_bytes()).is_ok());
    println!("json::check                    {check:9.1} ns");
    for (what, formats) in [("schema", false), ("schema with formats", true)] {
        let schema = compile(SCHEMA, formats)?;
        let cost = best(|| schema.check(black_box(ACCESS)).is_ok());
        println!("{what:30} {cost:9.1} ns   {:.2} of json::check", cost / check);
    }
    let schema = compile(SCHEMA, false)?;
    let wrong = ACCESS.replace("200,", "\"200\",");
    let cost = best(|| schema.check(black_box(&wrong)).is_err());
    println!("{:30} {cost:9.1} ns", "refused");
    for (what, schema, document) in hostile() {
        let begun = Instant::now();
        let schema = compile(&schema, false)?;
        let compiled = begun.elapsed();
        let begun = Instant::now();
        let verdict = schema.check(&document).map_err(|violations| violations.list.len());
        let (compiled, took) = (compiled.as_secs_f64() * 1e3, begun.elapsed().as_secs_f64() * 1e3);
        println!("{what:30} {took:9.1} ms   compiled in {compiled:.1} ms   {verdict:?}");
    }
    Ok(())
}

fn compile(text: &str, formats: bool) -> Result<Schema, String> {
    let documents = Documents::new();
    let options = SchemaOptions { documents: &documents, formats };
    Schema::compile("", text, &options).map_err(|mistakes| mistakes[0].to_string())
}

/// Schemas and documents that are designed to cost time, the documents of full size.
fn hostile() -> Vec<(&'static str, String, String)> {
    let doubling: String = (0..30)
        .map(|n| format!(r##""{n}":{{"anyOf":[{{"$ref":"#/$defs/{0}"}},{{"$ref":"#/$defs/{0}"}}]}},"##, n + 1))
        .collect();
    let doubling = format!(r##"{{"$ref":"#/$defs/0","$defs":{{{doubling}"30":false}}}}"##);
    let numbers = format!("[{}1]", "1,".repeat(520_000));
    let members: String = (0..60_000).map(|n| format!("\"member{n}\":{n},")).collect();
    let members = format!("{{{members}\"z\":1}}");
    let bits: String =
        (0_u32..1_000_000).map(|bit| if bit.wrapping_mul(2_654_435_769) >> 31 == 0 { '0' } else { '1' }).collect();
    let objects = format!("[{}{{}}]", r#"{"b":1,"a":2},"#.repeat(70_000));
    let pattern = r#"{"pattern":"[01]*1[01]{400}x"}"#;
    let several: String = (0..100).map(|n| format!(r#""{n}[a-z]*x$":{{}},"#)).collect();
    vec![
        ("exponential references", doubling, "1".into()),
        ("numbers", r#"{"items":{"type":"integer","minimum":0,"maximum":9}}"#.into(), numbers.clone()),
        ("numbers that are alike", r#"{"uniqueItems":true}"#.into(), numbers.clone()),
        ("numbers, all wrong", r#"{"items":{"type":"string"}}"#.into(), numbers.clone()),
        (
            "numbers, evaluated",
            r#"{"contains":{"minimum":5},"unevaluatedItems":false,"minContains":0}"#.into(),
            numbers,
        ),
        ("members", r#"{"propertyNames":{"minLength":3},"unevaluatedProperties":true}"#.into(), members.clone()),
        ("members, many patterns", format!(r#"{{"patternProperties":{{{several}"z":true}}}}"#), members),
        ("objects that are alike", r#"{"uniqueItems":true}"#.into(), objects),
        ("a pattern", pattern.into(), format!("\"{bits}\"")),
        ("one number", r#"{"multipleOf":7,"minimum":3}"#.into(), "7".repeat(1_000_000)),
    ]
}

/// Nanoseconds of one run, in the fastest iteration.
fn best(mut run: impl FnMut() -> bool) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..ITERATIONS {
        let (begun, mut runs) = (Instant::now(), 0_u32);
        while begun.elapsed() < ITERATION_TIME {
            for _ in 0..100 {
                assert!(black_box(run()), "it is as expected");
            }
            runs += 100;
        }
        best = best.min(begun.elapsed().as_secs_f64() * 1e9 / f64::from(runs));
    }
    best
}
