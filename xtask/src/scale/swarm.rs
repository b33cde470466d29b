//! The Swarm stack under load: scaled up and down, rolled to another image, and measured with the articles' loads.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::Setup;
use super::stack::Stack;
use super::table::Table;
use super::traffic::{expect_none_doubled, ranges, send_during, stored};
use crate::ab;
use crate::report::{Bar, Row};
use crate::wrk::{self, WrkLoad};

const PER_SECOND: u32 = 1_000;
/// The time with each number of gateways.
const HOLD: Duration = Duration::from_secs(5);
const STEPS: [usize; 3] = [3, 8, 2];
const STORED_LIMIT: Duration = Duration::from_secs(60);
const COUNTS: [usize; 4] = [1, 2, 4, 8];
const LOAD: WrkLoad = WrkLoad { connections: 64, duration: Duration::from_secs(2), is_keyed: false };
const AB: ab::AbLoad = ab::AbLoad { requests: 100_000, connections: 100 };
/// The article's figure for three front-ends with Swarm, 100,000 requests at 100.
const ARTICLE: f64 = 9_018.0;

/// Scales, rolls, and measures.
pub(super) fn run(setup: &Setup) -> Result<Vec<Row>> {
    let begun = Instant::now();
    let stack = Stack::deploy(&setup.binary, &setup.folder)?;
    println!("deployed after {:.1} s", begun.elapsed().as_secs_f64());
    let mut rows = scale_and_roll(&stack)?;
    rates(setup, &stack)?;
    rows.extend(threefold(setup, &stack)?);
    Ok(rows)
}

fn scale_and_roll(stack: &Stack) -> Result<Vec<Row>> {
    let begun = Instant::now();
    let shown = |what: &str| println!("{:>6.1} s: {what}", begun.elapsed().as_secs_f64());
    let scale = || {
        thread::sleep(HOLD);
        for gateways in STEPS {
            stack.scale(gateways)?;
            shown(&format!("{gateways} gateways"));
            thread::sleep(HOLD);
        }
        stack.roll()?;
        shown("rolled to another image");
        thread::sleep(HOLD);
        Ok(())
    };
    let (sent, ()) = send_during(stack.address()?, PER_SECOND, 0, scale)?;
    if let Err(error) = sent.expect_none_failed() {
        println!("{error:#}");
    }
    let found = wait_stored(stack, &sent.acknowledged)?;
    expect_none_doubled(&found)?;
    let missing: Vec<u64> = sent.acknowledged.iter().filter(|event| !found.contains_key(event)).copied().collect();
    if !missing.is_empty() {
        println!("acknowledged and not stored after {STORED_LIMIT:?}: {}", ranges(missing.iter().copied()));
    }
    println!("{} events acknowledged, {} volumes of gateways", sent.acknowledged.len(), stack.volumes()?);
    let row = |what: &str, measured: usize| {
        let what = format!("Swarm, 1 → 3 → 8 → 2 and a roll under 1,000/s: {what}");
        Row::alone(&what, "", measured as f64, Bar::AtMost(0.0))
    };
    Ok(vec![row("failed requests", sent.failed.len()), row("lost events", missing.len())])
}

/// The stored events, after all acknowledged ones are stored or the time is over.
fn wait_stored(stack: &Stack, acknowledged: &std::collections::BTreeSet<u64>) -> Result<BTreeMap<u64, u32>> {
    let begun = Instant::now();
    loop {
        let rows = stack.sql("select payload from events")?;
        let found = stored(&mut rows.as_bytes())?;
        if acknowledged.iter().all(|event| found.contains_key(event)) || begun.elapsed() > STORED_LIMIT {
            return Ok(found);
        }
        thread::sleep(Duration::from_secs(1));
    }
}

/// Rates behind HAProxy, which finds the gateways by Docker's DNS.
fn rates(setup: &Setup, stack: &Stack) -> Result<()> {
    let mut table =
        Table::new("durable POSTs a second by wrk, 64 connections, into gateways of a Swarm (null sink)", &["Swarm"]);
    for gateways in COUNTS {
        stack.scale(gateways)?;
        let url = format!("http://{}/ingest/event/speed", stack.address()?);
        let rate = setup.median(|| Ok(wrk::run_on(&url, LOAD, &setup.folder)?.requests_per_second))?;
        table.row(&format!("{gateways} gateways"), &[rate]);
    }
    table.print();
    Ok(())
}

/// Three gateways, as in the article.
fn threefold(setup: &Setup, stack: &Stack) -> Result<Vec<Row>> {
    stack.scale(3)?;
    let body = setup.folder.join("body.json");
    fs::write(&body, wrk::BODY)?;
    let report = ab::run(&format!("http://{}/ingest/event/speed", stack.address()?), AB, &body)?;
    let mut table = Table::new("three front-ends in a Swarm, 100,000 requests by ab at 100", &["requests/s"]);
    table.row("the article", &[ARTICLE]);
    table.row("today", &[report.requests_per_second]);
    table.print();
    if report.failed > 0 {
        bail!("{} requests of ab failed", report.failed);
    }
    let pairs = [(report.requests_per_second, ARTICLE)];
    Ok(vec![Row::alternating(
        "3 gateways in containers, ab at 100, against the article",
        "requests/s",
        &pairs,
        Bar::AtLeast(1.0),
    )])
}
