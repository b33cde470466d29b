//! Reads the output of `forebay bench --json`.

use anyhow::{Result, anyhow};
use serde_json::Value;

/// A latency such as `p99`, in milliseconds.
pub fn latency_ms(report: &Value, name: &str) -> Result<f64> {
    let pair = report["latency_us"].as_array().into_iter().flatten().find(|pair| pair[0] == name);
    let micros = pair.and_then(|pair| pair[1].as_f64());
    micros.map(|micros| micros / 1e3).ok_or_else(|| anyhow!("bench prints no {name}: {report}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn latencies_are_found_by_their_names() {
        let report = json!({"latency_us": [["p50", 500], ["p99", 1250.0]]});
        assert!((latency_ms(&report, "p99").unwrap() - 1.25).abs() < 1e-9);
        assert!(latency_ms(&report, "p9").is_err());
    }
}
