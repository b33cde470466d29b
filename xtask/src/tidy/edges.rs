//! Which crate may use which: the layers of `ARCHITECTURE.md`, checked on what `cargo metadata` says.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Finding;

/// Each of the project's crates with those that it may use. Tests may use more: dev-dependencies are free.
const ALLOWED: &[(&str, &[&str])] = &[
    ("clock", &[]),
    ("console", &[]),
    ("random", &[]),
    ("limits", &[]),
    ("metrics", &[]),
    ("host", &[]),
    ("profile", &["host"]),
    ("text", &[]),
    ("otlp", &[]),
    ("event", &["limits", "random", "text"]),
    ("tap", &["event"]),
    ("spans", &["event", "metrics", "random"]),
    ("access", &["event", "limits", "text"]),
    ("did_you_mean", &[]),
    ("json", &["event", "limits"]),
    ("pattern", &[]),
    ("expression", &["json", "limits", "pattern"]),
    ("timestamp", &["json", "text"]),
    ("aggregate", &["did_you_mean", "event", "expression", "json", "limits", "text", "timestamp"]),
    ("generator", &["random"]),
    ("settings", &["did_you_mean", "limits", "text"]),
    ("intake", &["event", "json", "limits", "otlp", "settings", "text", "timestamp"]),
    ("sink", &["clock", "event", "limits", "metrics", "settings", "tap", "text"]),
    ("net", &["clock", "limits", "metrics", "text"]),
    ("nats", &["net", "random", "text"]),
    ("http1", &["clock", "event", "limits", "net"]),
    ("objects", &["event", "json", "limits", "metrics", "net", "settings", "sink", "text"]),
    ("writer_protocol", &["event", "limits", "net", "objects", "sink", "text"]),
    ("sink-remote", &["event", "limits", "metrics", "net", "objects", "sink", "text", "writer_protocol"]),
    ("discovery", &["limits", "net", "sink-remote", "text"]),
    ("testkit", &["random"]),
    ("harness", &["generator", "testkit"]),
    ("xtask", &["generator", "harness", "random", "testkit"]),
    ("bench", &["event", "generator", "harness", "limits", "random", "sink", "sink-remote", "testkit"]),
    ("journal", &["event", "limits", "random", "text"]),
    ("eventlog", &["clock", "event", "journal", "limits", "metrics", "text"]),
    ("progress", &["journal"]),
    ("ledger", &["event", "eventlog", "expression", "limits", "metrics", "sink", "text"]),
    ("dead_letters", &["clock", "event", "eventlog", "ledger", "limits", "metrics", "sink", "text"]),
    ("aggregation", &["aggregate", "clock", "event", "eventlog", "metrics", "text"]),
    (
        "delivery",
        &[
            "aggregation",
            "dead_letters",
            "event",
            "eventlog",
            "ledger",
            "limits",
            "metrics",
            "objects",
            "progress",
            "random",
            "sink",
            "spans",
            "tap",
            "text",
        ],
    ),
    ("admin_api", &["dead_letters", "delivery", "event", "ledger", "sink-remote", "text"]),
    ("schema", &["json", "limits", "pattern", "text"]),
    ("transform", &["did_you_mean", "expression", "json", "limits", "pattern", "text", "timestamp"]),
    (
        "gateway",
        &[
            "access",
            "clock",
            "event",
            "eventlog",
            "expression",
            "http1",
            "intake",
            "json",
            "limits",
            "metrics",
            "nats",
            "net",
            "schema",
            "spans",
            "tap",
            "text",
            "timestamp",
            "transform",
        ],
    ),
    ("schema_tools", &["did_you_mean", "json", "limits", "schema", "transform"]),
    ("sink-directory", &["event", "net", "objects", "settings", "sink"]),
    ("sink-elasticsearch", &["event", "json", "limits", "net", "settings", "sink", "text"]),
    ("sink-nats", &["event", "nats", "net", "settings", "sink", "text"]),
    ("sink-postgres", &["event", "json", "limits", "net", "settings", "sink", "text"]),
    ("sink-redis", &["event", "json", "net", "settings", "sink", "text"]),
    ("sink-s3", &["clock", "net", "objects", "settings", "sink", "text"]),
    ("sink-sqlite", &["clock", "event", "limits", "settings", "sink"]),
    ("sink-swift", &["net", "objects", "settings", "sink", "text"]),
    ("sink-webhook", &["clock", "event", "limits", "net", "settings", "sink", "text"]),
    (
        "config",
        &[
            "access",
            "aggregate",
            "event",
            "expression",
            "gateway",
            "intake",
            "json",
            "ledger",
            "limits",
            "nats",
            "net",
            "objects",
            "schema",
            "schema_tools",
            "settings",
            "sink",
            "text",
            "timestamp",
            "transform",
        ],
    ),
    ("load", &["clock", "expression", "generator", "json", "limits", "net", "random", "settings", "text"]),
    (
        "cli",
        &[
            "access",
            "admin_api",
            "config",
            "dead_letters",
            "event",
            "eventlog",
            "journal",
            "json",
            "ledger",
            "limits",
            "load",
            "schema",
            "schema_tools",
            "settings",
            "sink",
            "text",
            "timestamp",
        ],
    ),
    (
        "writer",
        &[
            "access",
            "clock",
            "event",
            "json",
            "limits",
            "metrics",
            "net",
            "objects",
            "sink",
            "spans",
            "tap",
            "text",
            "writer_protocol",
        ],
    ),
    (
        "forebay",
        &[
            "access",
            "admin_api",
            "aggregate",
            "aggregation",
            "cli",
            "clock",
            "config",
            "dead_letters",
            "delivery",
            "console",
            "discovery",
            "event",
            "eventlog",
            "gateway",
            "expression",
            "host",
            "profile",
            "journal",
            "json",
            "ledger",
            "limits",
            "load",
            "metrics",
            "nats",
            "net",
            "objects",
            "otlp",
            "progress",
            "schema",
            "settings",
            "sink",
            "sink-remote",
            "spans",
            "tap",
            "text",
            "transform",
            "writer",
        ],
    ),
    ("sink-lines", &["event", "settings", "sink"]),
    (
        "sink-testing",
        &[
            "access",
            "event",
            "limits",
            "metrics",
            "net",
            "objects",
            "sink",
            "sink-remote",
            "testkit",
            "writer",
            "writer_protocol",
        ],
    ),
];

/// Crates of others that some of the project's crates may not use, and why.
const BANNED: &[(&str, &[&str], &str)] = &[
    ("journal", &["tokio", "futures", "async-trait"], "the journal is synchronous: its callers choose the thread"),
    ("journal", &["serde_json", "serde"], "the journal knows bytes, not JSON"),
    ("event", &["tokio", "hyper", "rustix"], "no I/O: take bytes and times as arguments"),
    ("text", &["tokio", "hyper", "rustix"], "no I/O: take bytes and times as arguments"),
    ("otlp", &["tokio", "hyper", "rustix"], "no I/O: take bytes and times as arguments"),
    ("access", &["tokio", "hyper", "rustix"], "no I/O: take bytes and times as arguments"),
    ("did_you_mean", &["tokio", "hyper", "rustix"], "no I/O: take bytes and times as arguments"),
    ("json", &["tokio", "hyper", "rustix"], "no I/O: take bytes and times as arguments"),
    ("pattern", &["tokio", "hyper", "rustix"], "no I/O: take bytes and times as arguments"),
    ("timestamp", &["tokio", "hyper", "rustix"], "no I/O: take bytes and times as arguments"),
    ("expression", &["tokio", "hyper", "rustix"], "no I/O: take bytes and times as arguments"),
    ("schema", &["tokio", "hyper", "rustix"], "no I/O: take bytes and times as arguments"),
    ("transform", &["tokio", "hyper", "rustix"], "no I/O: take bytes and times as arguments"),
    ("schema_tools", &["tokio", "hyper", "rustix"], "no I/O: take bytes and times as arguments"),
    ("aggregate", &["tokio", "hyper", "rustix"], "no I/O: take bytes and times as arguments"),
    ("gateway", &["hyper"], "one reader of requests, `http1`: docs/internals/decisions/006"),
    ("gateway", &["rusqlite"], "the gateway knows no store: it declares what it needs and the binary wires it"),
];

/// The rule, on the JSON of `cargo metadata`.
pub(super) fn forbidden_edges(metadata: &Value) -> Result<Vec<Finding>> {
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    Ok(packages.iter().flat_map(package_findings).collect())
}

fn package_findings(package: &Value) -> Vec<Finding> {
    let name = package["name"].as_str().unwrap_or_default();
    let finding = |message| Finding { path: format!("crate {name}"), line: 0, message };
    let Some((_, allowed)) = ALLOWED.iter().find(|(crate_name, _)| *crate_name == name) else {
        return vec![finding("unknown to tidy: add it to the layers, here and in ARCHITECTURE.md".into())];
    };
    let mut findings = Vec::new();
    for used in normal_dependencies(package) {
        let is_ours = ALLOWED.iter().any(|(ours, _)| *ours == used);
        // The list of kinds: a new store needs no line here.
        let is_store = name == "config" && used.starts_with("sink-") && used != "sink-testing";
        if is_ours && !is_store && !allowed.contains(&used) {
            findings.push(finding(format!("may not use `{used}`, only: {}", allowed.join(", "))));
        }
        let banned = BANNED.iter().find(|(crate_name, theirs, _)| *crate_name == name && theirs.contains(&used));
        if let Some((_, _, why)) = banned {
            findings.push(finding(format!("may not use `{used}`: {why}")));
        }
    }
    findings
}

/// What the shipped code uses: `kind` is null, or `build`; `dev` is for tests.
fn normal_dependencies(package: &Value) -> Vec<&str> {
    let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    dependencies.iter().filter(|used| used["kind"] != "dev").filter_map(|used| used["name"].as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn messages(name: &str, used: &str, kind: &Value) -> usize {
        let package = json!({"name": name, "dependencies": [{"name": used, "kind": kind}]});
        forbidden_edges(&json!({"packages": [package]})).unwrap().len()
    }

    #[test]
    fn only_the_layers_below_may_be_used() {
        assert_eq!(messages("gateway", "sink", &Value::Null), 1);
        assert_eq!(messages("event", "journal", &json!("build")), 1);
        assert_eq!(messages("gateway", "eventlog", &Value::Null), 0);
        assert_eq!(messages("gateway", "sink", &json!("dev")), 0);
        assert_eq!(messages("unknown", "event", &Value::Null), 1);
        assert_eq!(messages("config", "sink-sqlite", &Value::Null), 0);
        assert_eq!(messages("config", "sink-testing", &Value::Null), 1);
    }

    /// As `docs/internals/adding-a-store.md` says.
    #[test]
    fn a_store_costs_four_lines_outside_its_crate() {
        let names = ["sink-", "sink_"].map(|prefix| format!("{prefix}{}", "webhook"));
        let root = crate::workspace::root().unwrap();
        let is_named = |line: &&str| names.iter().any(|name| line.contains(name));
        let mut lines = Vec::new();
        for path in super::super::files().unwrap() {
            let is_code = [".rs", ".toml"].iter().any(|end| path.ends_with(end));
            if is_code && !path.starts_with(&format!("crates/{}/", names[0])) {
                // The corpora of fuzzing have files of any bytes.
                let bytes = std::fs::read(root.join(&path)).unwrap();
                let text = String::from_utf8_lossy(&bytes);
                lines.extend(text.lines().filter(is_named).map(|line| format!("{path}: {line}")));
            }
        }
        assert_eq!(lines.len(), 4, "{lines:#?}");
    }

    #[test]
    fn some_crates_of_others_are_banned() {
        for (name, theirs, _) in BANNED {
            for used in *theirs {
                assert_eq!(messages(name, used, &Value::Null), 1, "{name} uses {used}");
                assert_eq!(messages("forebay", used, &Value::Null), 0);
            }
        }
    }

    #[test]
    fn the_layers_have_no_circle() {
        for (at, (name, allowed)) in ALLOWED.iter().enumerate().filter(|(_, (name, _))| *name != "forebay") {
            let above = ALLOWED[at..].iter().find(|(later, _)| allowed.contains(later));
            assert!(above.is_none(), "{name} uses a layer above it: {above:?}");
        }
    }
}
