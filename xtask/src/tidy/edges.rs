//! Which crate may use which: the layers of `ARCHITECTURE.md`, checked on what `cargo metadata` says.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Finding;

/// Each crate with those of ours that it may use. Tests may use more: dev-dependencies are free.
const ALLOWED: &[(&str, &[&str])] = &[
    ("clock", &[]),
    ("event", &[]),
    ("access", &["event"]),
    ("journal", &["event"]),
    ("eventlog", &["clock", "event", "journal"]),
    ("pipeline", &["event"]),
    ("settings", &["event"]),
    ("net", &["clock"]),
    ("sink", &["settings", "event"]),
    ("objects", &["settings", "event", "net", "pipeline", "sink"]),
    ("sink-testing", &["event", "sink"]),
    ("sink-sqlite", &["settings", "event", "sink"]),
    ("sink-postgres", &["settings", "event", "net", "pipeline", "sink"]),
    ("sink-redis", &["settings", "event", "net", "pipeline", "sink"]),
    ("sink-nats", &["settings", "event", "net", "sink"]),
    ("sink-elasticsearch", &["settings", "event", "net", "pipeline", "sink"]),
    ("sink-webhook", &["settings", "clock", "event", "net", "sink"]),
    ("sink-directory", &["settings", "event", "net", "objects", "sink"]),
    ("sink-swift", &["settings", "event", "net", "objects", "sink"]),
    ("sink-s3", &["settings", "clock", "event", "net", "objects", "sink"]),
    ("sink-remote", &["event", "net", "objects", "sink"]),
    ("delivery", &["event", "eventlog", "objects", "pipeline", "sink"]),
    ("gateway", &["access", "clock", "event", "pipeline", "eventlog", "net"]),
    (
        "config",
        &[
            "access",
            "delivery",
            "event",
            "gateway",
            "net",
            "objects",
            "pipeline",
            "settings",
            "sink",
            "sink-directory",
            "sink-elasticsearch",
            "sink-nats",
            "sink-postgres",
            "sink-redis",
            "sink-remote",
            "sink-s3",
            "sink-sqlite",
            "sink-swift",
            "sink-webhook",
        ],
    ),
    (
        "forebay",
        &[
            "access",
            "clock",
            "config",
            "settings",
            "event",
            "journal",
            "eventlog",
            "pipeline",
            "sink",
            "objects",
            "sink-sqlite",
            "sink-postgres",
            "sink-redis",
            "sink-nats",
            "sink-elasticsearch",
            "sink-webhook",
            "sink-directory",
            "sink-swift",
            "sink-s3",
            "sink-remote",
            "delivery",
            "gateway",
            "load",
            "net",
            "writer",
        ],
    ),
    ("writer", &["access", "clock", "event", "sink", "net", "objects", "sink-remote"]),
    ("load", &["clock", "event", "pipeline", "net"]),
    ("xtask", &["event", "load", "sink", "sink-remote"]),
];

/// Crates of others that some of ours may not use, and why.
const BANNED: &[(&str, &[&str], &str)] = &[
    ("journal", &["tokio", "futures", "async-trait"], "the journal is synchronous: its callers choose the thread"),
    ("journal", &["serde_json", "sonic-rs", "serde"], "the journal knows bytes, not JSON"),
    ("event", &["tokio", "hyper", "rustix"], "no I/O: take bytes and times as arguments"),
    ("access", &["tokio", "hyper", "rustix"], "no I/O: take bytes and times as arguments"),
    ("pipeline", &["tokio", "hyper", "rustix"], "no I/O: take bytes and times as arguments"),
    ("gateway", &["hyper"], "one reader of requests, `gateway::http1`: docs/decisions/006"),
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
        if is_ours && !allowed.contains(&used) {
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
        assert_eq!(messages("stranger", "event", &Value::Null), 1);
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
