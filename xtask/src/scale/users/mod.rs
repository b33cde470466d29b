//! Thousands of users who log in, read, write and request images: against the bars, and with what makes it possible switched off.

mod images;
mod run;
mod site;
mod variant;
mod watch;

use anyhow::Result;

use super::Setup;
use crate::report::{self, Bar, Row};
use run::Measured;
use site::Site;
use variant::Variant;

/// Options of `cargo xtask scale users`.
#[derive(clap::Args, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Options {
    /// The time of the load in seconds. Each control takes as long, but at most 60 s.
    #[arg(long, default_value_t = Self::FULL.seconds)]
    seconds: u64,
    /// The number of users. With fewer users or seconds than usual, only errors, connections and fetches are judged.
    #[arg(long, default_value_t = Self::FULL.users)]
    users: u32,
}

impl Options {
    /// The load that the bars are for.
    pub(super) const FULL: Self = Self { seconds: 300, users: 3_000 };

    const fn is_full(self) -> bool {
        self.seconds >= Self::FULL.seconds && self.users >= Self::FULL.users
    }
}

const CONTROL_SECONDS: u64 = 60;
const P99_MOST_MS: f64 = 300.0;
/// What the allocator may keep in addition to the memory after a fifth of the time.
const GROWTH_MIB_MOST: f64 = 8.0;
/// One reader is so much slower than the usual ones, at a distance.
const ONE_READER_LEAST: f64 = 10.0;
/// So many times more fetches a request without a cache. Those that are requested at the same time share a fetch.
const FETCHED_LEAST: f64 = 10.0;

/// Runs the load and its controls. Returns the figures that are judged.
pub(super) fn run(setup: &Setup, options: Options) -> Result<Vec<Row>> {
    let mut site = Site::start(setup, options.users)?;
    let usual = site.measure(Variant::USUAL, options.seconds)?;
    let seconds = options.seconds.min(CONTROL_SECONDS);
    let far = site.measure(Variant::FAR, seconds)?;
    let one_reader = site.measure(Variant::ONE_READER, seconds)?;
    let uncached = site.measure(Variant::UNCACHED, seconds)?;
    let mut judged = judged_always(&usual, options)?;
    let mut rows = judged_in_full(&usual)?;
    rows.extend(controls(&far, &one_reader, &uncached)?);
    if options.is_full() {
        judged.extend(rows);
    } else {
        println!("\nnot judged, because the load is shorter than usual:");
        report::show(&rows);
    }
    Ok(judged)
}

fn judged_always(usual: &Measured, options: Options) -> Result<Vec<Row>> {
    let mut rows = vec![
        Row::alone("requests that weren't answered as expected", "", usual.errors()?, Bar::AtMost(0.0)),
        Row::alone("requests", "", usual.requests()?, Bar::AtLeast(f64::from(options.users))),
    ];
    for (what, most, allowed) in usual.used.connections_most() {
        rows.push(Row::alone(&format!("connections to {what}"), "", f64::from(most), Bar::AtMost(f64::from(allowed))));
    }
    let images = f64::from(images::COUNT);
    rows.push(Row::alone("fetches of the images", "", usual.reads_of("miss"), Bar::AtMost(images)));
    let expiries = (options.seconds / images::REVALIDATE_SECONDS) as f64;
    let revalidated = usual.reads_of("revalidated");
    rows.push(Row::alone("revalidations of the images", "", revalidated, Bar::AtMost(images * expiries)));
    Ok(rows)
}

fn judged_in_full(usual: &Measured) -> Result<Vec<Row>> {
    let (early, late) = usual.used.memory_mib();
    Ok(vec![
        Row::alone("p99 of all steps", "ms", usual.p99_ms("all")?, Bar::AtMost(P99_MOST_MS)),
        Row::alone(
            "memory at the end, against a fifth of the time",
            "MiB more",
            late - early,
            Bar::AtMost(GROWTH_MIB_MOST),
        ),
    ])
}

fn controls(far: &Measured, one_reader: &Measured, uncached: &Measured) -> Result<Vec<Row>> {
    let p99 = [(one_reader.p99_ms("own")?, far.p99_ms("own")?)];
    let fetched =
        |measured: &Measured| Ok::<_, anyhow::Error>(measured.reads_of("miss") / measured.requests_of("image")?);
    let fetched = [(fetched(uncached)?, fetched(far)?)];
    Ok(vec![
        Row::alternating("control, one reader: p99 of own events", "ms", &p99, Bar::AtLeast(ONE_READER_LEAST)),
        Row::alternating("control, no cache: fetches for each request", "", &fetched, Bar::AtLeast(FETCHED_LEAST)),
    ])
}
