//! Holds transforms to the tables of examples in `docs/reference/transforms.md`.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use transform::{Context, Scratch, StepSpec, Tables, Traced, Transform, TransformOutcome};

const PAGE: &str = include_str!("../../../../docs/reference/transforms.md");
const HEAD: &str = "| steps | event | becomes |";
const CONTEXT: Context<'static> = Context {
    received_at: 1_795_341_600_000_000,
    client: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7))),
    source: "shop",
    event_type: "access",
    key: &[],
    header: &|name| (name == "x-request-id").then_some("r-1"),
};

#[derive(serde::Deserialize)]
struct Config {
    transform: Vec<StepSpec>,
}

/// The cells of a row, split at the bars that aren't escaped.
fn cells(row: &str) -> Vec<String> {
    let row = row.replace(r"\|", "\u{1}");
    row.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
}

fn code(cell: &str) -> &str {
    cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`')).unwrap_or(cell)
}

fn compile(steps: &str) -> Transform {
    let steps = if steps.starts_with('[') { steps.to_owned() } else { format!("[{steps}]") };
    let config: Config = toml::from_str(&format!("transform = {steps}")).expect("the example is TOML");
    let mut tables = Tables::default();
    tables.add_json("countries", r#"{"NL":"Netherlands"}"#).expect("it is a table");
    Transform::compile(&config.transform, &tables).expect("the example is right")
}

fn result(steps: &str, event: &str) -> String {
    json::check(event.as_bytes()).expect("the example is JSON");
    let transform = compile(steps);
    let (mut windows, mut scratch) = (transform.windows(1), Scratch::default());
    match transform.run(event, &CONTEXT, &mut windows, &mut scratch) {
        Ok(TransformOutcome::Unchanged) => format!("`{event}`"),
        Ok(TransformOutcome::Changed(event)) => format!("`{event}`"),
        Ok(TransformOutcome::Filtered(_)) => "filtered".to_owned(),
        Ok(TransformOutcome::Several(several)) => {
            several.events.iter().map(|part| format!("`{}`", part.payload)).collect::<Vec<_>>().join(" ")
        }
        Err(error) => format!("error: {error}"),
    }
}

fn rows() -> Vec<Vec<String>> {
    let tables = PAGE.match_indices(HEAD).map(|(at, _)| &PAGE[at..]);
    tables.flat_map(|table| table.lines().skip(2).take_while(|row| row.starts_with('|')).map(cells)).collect()
}

#[test]
fn examples_give_the_results_of_the_page() {
    let rows = rows();
    assert!(rows.len() >= 80, "{} examples", rows.len());
    let wrong: Vec<_> = rows
        .iter()
        .map(|row| (row, result(code(&row[1]), code(&row[2]))))
        .filter(|(row, result)| row[3].replace(r"\`", "`") != *result)
        .map(|(row, result)| format!("{} on {}\n  says {}\n  and gives {result}", row[1], row[2], row[3]))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_step_has_an_example() {
    let rows = rows();
    for name in [
        "set",
        "default",
        "enrich",
        "rename",
        "move",
        "copy",
        "drop",
        "keep",
        "lower",
        "upper",
        "trim",
        "replace",
        "extract",
        "split",
        "join",
        "truncate",
        "coerce",
        "parse",
        "flatten",
        "unflatten",
        "hash",
        "mask",
        "redact",
        "lookup",
        "filter",
        "sample",
        "dedupe",
        "explode",
    ] {
        assert!(rows.iter().any(|row| row[1].contains(&format!("{{ {name} = "))), "{name}");
    }
}

#[test]
fn trace_ends_with_the_stored_event() {
    for row in rows() {
        let (steps, event) = (code(&row[1]), code(&row[2]));
        let transform = compile(steps);
        let (mut windows, mut scratch) = (transform.windows(1), Scratch::default());
        let mut traced: Vec<Traced> = Vec::new();
        let outcome = transform
            .trace(event, &CONTEXT, &mut windows, &mut scratch, &|| Duration::ZERO, &mut |step| traced.push(step));
        let last = traced.last().expect("every transform has a step").payload.as_deref().expect("it is short");
        match outcome {
            Ok(TransformOutcome::Unchanged) => assert_eq!(last, event, "{steps}"),
            Ok(TransformOutcome::Changed(payload)) => assert_eq!(last, payload, "{steps}"),
            _ => {}
        }
    }
}
