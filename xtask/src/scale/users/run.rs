//! One load: `forebay bench --scenario`, with the figures of the server.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::watch::Used;
use crate::latency::latency_ms;
use crate::metrics;

/// The figures of a load.
pub(super) struct Measured {
    report: Value,
    /// The server's metrics before the load and after it.
    metrics: [String; 2],
    pub(super) used: Used,
}

/// Runs `forebay bench` with a scenario. Returns its report: a limit that is exceeded is no error.
pub(super) fn bench(binary: &Path, url: &str, scenario: &Path, seconds: u64) -> Result<Value> {
    let mut bench = Command::new(binary);
    bench.args(["bench", "--json", "--url", url, "--duration", &format!("{seconds}s"), "--scenario"]).arg(scenario);
    let output = bench.output().context("starting forebay bench")?;
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .with_context(|| format!("forebay bench printed {text}{}", String::from_utf8_lossy(&output.stderr)))
}

impl Measured {
    pub(super) const fn new(report: Value, metrics: [String; 2], used: Used) -> Self {
        Self { report, metrics, used }
    }

    pub(super) fn errors(&self) -> Result<f64> {
        self.report["all"]["errors"].as_f64().context("the report has no errors")
    }

    pub(super) fn requests(&self) -> Result<f64> {
        requests(&self.report["all"])
    }

    /// Requests of a step.
    pub(super) fn requests_of(&self, step: &str) -> Result<f64> {
        requests(self.figures(step)?)
    }

    /// The 99th percentile of a step, or of `all`.
    pub(super) fn p99_ms(&self, step: &str) -> Result<f64> {
        latency_ms(self.figures(step)?, "p99")
    }

    fn figures(&self, step: &str) -> Result<&Value> {
        if step == "all" {
            return Ok(&self.report["all"]);
        }
        let mut steps = self.report["steps"].as_array().into_iter().flatten();
        steps.find(|one| one["name"] == step).with_context(|| format!("the report has no step {step}"))
    }

    /// Reads of objects with this result, such as `miss`.
    pub(super) fn reads_of(&self, result: &str) -> f64 {
        let label = format!("result=\"{result}\"");
        let [before, after] =
            [0, 1].map(|at| metrics::sum_with(&self.metrics[at], "forebay_object_reads_total", &label));
        after - before
    }

    /// Prints the steps.
    pub(super) fn print(&self, name: &str) -> Result<()> {
        println!(
            "\n{name}\n{:<10} {:>9} {:>7} {:>10} {:>10} {:>10}",
            "", "requests", "errors", "p50 ms", "p99 ms", "max ms"
        );
        for step in ["login", "own", "task", "image", "all"] {
            let figures = self.figures(step)?;
            let errors = &figures["errors"];
            let [p50, p99, max] = ["p50", "p99", "max"].map(|name| latency_ms(figures, name).unwrap_or(f64::NAN));
            let requests = requests(figures)?;
            println!("{step:<10} {requests:>9} {errors:>7} {p50:>10.1} {p99:>10.1} {max:>10.1}");
            for (status, said) in figures["said"].as_object().into_iter().flatten() {
                println!("           {} answered {status}: {said}", figures["answers"][status]);
            }
            for (why, count) in figures["failures"].as_object().into_iter().flatten() {
                println!("           {count} without an answer: {why}");
            }
        }
        let connections: Vec<String> =
            self.used.connections_most().iter().map(|(what, most, _)| format!("{what} {most}")).collect();
        let (early, late) = self.used.memory_mib();
        let [hit, miss, revalidated] = ["hit", "miss", "revalidated"].map(|result| self.reads_of(result));
        println!("connections: {}; memory {early:.1} MiB, at the end {late:.1} MiB", connections.join(", "));
        println!("images: {hit} from memory, {miss} fetched, {revalidated} asked whether they have changed");
        Ok(())
    }
}

fn requests(figures: &Value) -> Result<f64> {
    figures["requests"].as_f64().context("the report has no requests")
}
