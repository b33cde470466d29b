//! The files of the folder `examples`, within the binary.

/// A folder of `examples`.
pub(super) struct Example {
    pub(super) name: &'static str,
    /// What it shows, in one line.
    pub(super) about: &'static str,
    /// Each with its path within the folder, and its text.
    pub(super) files: &'static [(&'static str, &'static str)],
}

/// All examples, in the order in which the command lists them.
pub(super) const EXAMPLES: &[Example] = &[
    Example {
        name: "github-webhooks-to-postgres",
        about: "Stores each delivery of GitHub once, and pushes in columns (PostgreSQL)",
        files: &[
            ("README.md", include_str!("../../../../examples/github-webhooks-to-postgres/README.md")),
            ("forebay.toml", include_str!("../../../../examples/github-webhooks-to-postgres/forebay.toml")),
            ("post.sh", include_str!("../../../../examples/github-webhooks-to-postgres/post.sh")),
            (
                "cases/ping/case.toml",
                include_str!("../../../../examples/github-webhooks-to-postgres/cases/ping/case.toml"),
            ),
            (
                "cases/ping/filtered.ndjson",
                include_str!("../../../../examples/github-webhooks-to-postgres/cases/ping/filtered.ndjson"),
            ),
            (
                "cases/ping/input.ndjson",
                include_str!("../../../../examples/github-webhooks-to-postgres/cases/ping/input.ndjson"),
            ),
            (
                "cases/push/case.toml",
                include_str!("../../../../examples/github-webhooks-to-postgres/cases/push/case.toml"),
            ),
            (
                "cases/push/expected.ndjson",
                include_str!("../../../../examples/github-webhooks-to-postgres/cases/push/expected.ndjson"),
            ),
            (
                "cases/push/input.ndjson",
                include_str!("../../../../examples/github-webhooks-to-postgres/cases/push/input.ndjson"),
            ),
            (
                "cases/rejected/case.toml",
                include_str!("../../../../examples/github-webhooks-to-postgres/cases/rejected/case.toml"),
            ),
            (
                "cases/rejected/input.ndjson",
                include_str!("../../../../examples/github-webhooks-to-postgres/cases/rejected/input.ndjson"),
            ),
            (
                "cases/rejected/refused.ndjson",
                include_str!("../../../../examples/github-webhooks-to-postgres/cases/rejected/refused.ndjson"),
            ),
            (
                "schemas/github.json",
                include_str!("../../../../examples/github-webhooks-to-postgres/schemas/github.json"),
            ),
        ],
    },
    Example {
        name: "github-webhook",
        about: "Verifies signed webhooks of GitHub, and stores each once (SQLite)",
        files: &[
            ("README.md", include_str!("../../../../examples/github-webhook/README.md")),
            ("forebay.toml", include_str!("../../../../examples/github-webhook/forebay.toml")),
            ("post.sh", include_str!("../../../../examples/github-webhook/post.sh")),
            ("cases/push/case.toml", include_str!("../../../../examples/github-webhook/cases/push/case.toml")),
            (
                "cases/push/expected.ndjson",
                include_str!("../../../../examples/github-webhook/cases/push/expected.ndjson"),
            ),
            ("cases/push/input.ndjson", include_str!("../../../../examples/github-webhook/cases/push/input.ndjson")),
            ("cases/rejected/case.toml", include_str!("../../../../examples/github-webhook/cases/rejected/case.toml")),
            (
                "cases/rejected/input.ndjson",
                include_str!("../../../../examples/github-webhook/cases/rejected/input.ndjson"),
            ),
            (
                "cases/rejected/refused.ndjson",
                include_str!("../../../../examples/github-webhook/cases/rejected/refused.ndjson"),
            ),
            ("schemas/github.json", include_str!("../../../../examples/github-webhook/schemas/github.json")),
        ],
    },
    Example {
        name: "cloudevents",
        about: "Stores CloudEvents of every mode once, in one form (SQLite)",
        files: &[
            ("README.md", include_str!("../../../../examples/cloudevents/README.md")),
            ("forebay.toml", include_str!("../../../../examples/cloudevents/forebay.toml")),
            ("post.sh", include_str!("../../../../examples/cloudevents/post.sh")),
            ("cases/order/case.toml", include_str!("../../../../examples/cloudevents/cases/order/case.toml")),
            (
                "cases/order/expected.ndjson",
                include_str!("../../../../examples/cloudevents/cases/order/expected.ndjson"),
            ),
            ("cases/order/input.ndjson", include_str!("../../../../examples/cloudevents/cases/order/input.ndjson")),
            ("cases/rejected/case.toml", include_str!("../../../../examples/cloudevents/cases/rejected/case.toml")),
            (
                "cases/rejected/input.ndjson",
                include_str!("../../../../examples/cloudevents/cases/rejected/input.ndjson"),
            ),
            (
                "cases/rejected/refused.ndjson",
                include_str!("../../../../examples/cloudevents/cases/rejected/refused.ndjson"),
            ),
            ("schemas/order.json", include_str!("../../../../examples/cloudevents/schemas/order.json")),
        ],
    },
    Example {
        name: "access-logs-with-aggregates",
        about: "Parses lines of an access log, and counts them by minute and by visit (SQLite)",
        files: &[
            ("README.md", include_str!("../../../../examples/access-logs-with-aggregates/README.md")),
            ("forebay.toml", include_str!("../../../../examples/access-logs-with-aggregates/forebay.toml")),
            ("post.sh", include_str!("../../../../examples/access-logs-with-aggregates/post.sh")),
            (
                "cases/minute/case.toml",
                include_str!("../../../../examples/access-logs-with-aggregates/cases/minute/case.toml"),
            ),
            (
                "cases/minute/expected.ndjson",
                include_str!("../../../../examples/access-logs-with-aggregates/cases/minute/expected.ndjson"),
            ),
            (
                "cases/minute/filtered.ndjson",
                include_str!("../../../../examples/access-logs-with-aggregates/cases/minute/filtered.ndjson"),
            ),
            (
                "cases/minute/input.timed",
                include_str!("../../../../examples/access-logs-with-aggregates/cases/minute/input.timed"),
            ),
            (
                "cases/minute/results.minute.ndjson",
                include_str!("../../../../examples/access-logs-with-aggregates/cases/minute/results.minute.ndjson"),
            ),
            (
                "cases/minute/results.visit.ndjson",
                include_str!("../../../../examples/access-logs-with-aggregates/cases/minute/results.visit.ndjson"),
            ),
            (
                "cases/rejected/case.toml",
                include_str!("../../../../examples/access-logs-with-aggregates/cases/rejected/case.toml"),
            ),
            (
                "cases/rejected/input.ndjson",
                include_str!("../../../../examples/access-logs-with-aggregates/cases/rejected/input.ndjson"),
            ),
            (
                "cases/rejected/refused.ndjson",
                include_str!("../../../../examples/access-logs-with-aggregates/cases/rejected/refused.ndjson"),
            ),
            (
                "schemas/access.json",
                include_str!("../../../../examples/access-logs-with-aggregates/schemas/access.json"),
            ),
        ],
    },
    Example {
        name: "job-results",
        about: "Validates, transforms and counts, with a store for each type (PostgreSQL, OpenSearch, Redis, Swift)",
        files: &[
            ("README.md", include_str!("../../../../examples/job-results/README.md")),
            ("forebay.toml", include_str!("../../../../examples/job-results/forebay.toml")),
            ("post.sh", include_str!("../../../../examples/job-results/post.sh")),
            ("cases/log/case.toml", include_str!("../../../../examples/job-results/cases/log/case.toml")),
            ("cases/log/expected.ndjson", include_str!("../../../../examples/job-results/cases/log/expected.ndjson")),
            ("cases/log/input.ndjson", include_str!("../../../../examples/job-results/cases/log/input.ndjson")),
            ("cases/progress/case.toml", include_str!("../../../../examples/job-results/cases/progress/case.toml")),
            (
                "cases/progress/expected.ndjson",
                include_str!("../../../../examples/job-results/cases/progress/expected.ndjson"),
            ),
            (
                "cases/progress/input.ndjson",
                include_str!("../../../../examples/job-results/cases/progress/input.ndjson"),
            ),
            (
                "cases/progress/refused.ndjson",
                include_str!("../../../../examples/job-results/cases/progress/refused.ndjson"),
            ),
            ("cases/rejected/case.toml", include_str!("../../../../examples/job-results/cases/rejected/case.toml")),
            (
                "cases/rejected/input.ndjson",
                include_str!("../../../../examples/job-results/cases/rejected/input.ndjson"),
            ),
            (
                "cases/rejected/refused.ndjson",
                include_str!("../../../../examples/job-results/cases/rejected/refused.ndjson"),
            ),
            ("cases/report/case.toml", include_str!("../../../../examples/job-results/cases/report/case.toml")),
            (
                "cases/report/expected.ndjson",
                include_str!("../../../../examples/job-results/cases/report/expected.ndjson"),
            ),
            ("cases/report/input.ndjson", include_str!("../../../../examples/job-results/cases/report/input.ndjson")),
            ("cases/result/case.toml", include_str!("../../../../examples/job-results/cases/result/case.toml")),
            (
                "cases/result/expected.ndjson",
                include_str!("../../../../examples/job-results/cases/result/expected.ndjson"),
            ),
            ("cases/result/input.timed", include_str!("../../../../examples/job-results/cases/result/input.timed")),
            (
                "cases/result/results.minute.ndjson",
                include_str!("../../../../examples/job-results/cases/result/results.minute.ndjson"),
            ),
            ("schemas/job-log.json", include_str!("../../../../examples/job-results/schemas/job-log.json")),
            ("schemas/job-progress.json", include_str!("../../../../examples/job-results/schemas/job-progress.json")),
            ("schemas/job-report.json", include_str!("../../../../examples/job-results/schemas/job-report.json")),
            ("schemas/job-result.json", include_str!("../../../../examples/job-results/schemas/job-result.json")),
        ],
    },
    Example {
        name: "images-to-swift",
        about: "Stores images within events as objects, and serves them (Swift)",
        files: &[
            ("README.md", include_str!("../../../../examples/images-to-swift/README.md")),
            ("forebay.toml", include_str!("../../../../examples/images-to-swift/forebay.toml")),
            ("post.sh", include_str!("../../../../examples/images-to-swift/post.sh")),
            ("cases/shot/case.toml", include_str!("../../../../examples/images-to-swift/cases/shot/case.toml")),
            (
                "cases/shot/expected.ndjson",
                include_str!("../../../../examples/images-to-swift/cases/shot/expected.ndjson"),
            ),
            ("cases/shot/input.ndjson", include_str!("../../../../examples/images-to-swift/cases/shot/input.ndjson")),
            (
                "cases/shot/refused.ndjson",
                include_str!("../../../../examples/images-to-swift/cases/shot/refused.ndjson"),
            ),
            ("schemas/shot.json", include_str!("../../../../examples/images-to-swift/schemas/shot.json")),
        ],
    },
    Example {
        name: "tokens-and-tls",
        about: "Serves other machines: TLS, and a token for each client and purpose (SQLite)",
        files: &[
            ("README.md", include_str!("../../../../examples/tokens-and-tls/README.md")),
            ("forebay.toml", include_str!("../../../../examples/tokens-and-tls/forebay.toml")),
            ("post.sh", include_str!("../../../../examples/tokens-and-tls/post.sh")),
            ("setup.sh", include_str!("../../../../examples/tokens-and-tls/setup.sh")),
            ("cases/order/case.toml", include_str!("../../../../examples/tokens-and-tls/cases/order/case.toml")),
            (
                "cases/order/expected.ndjson",
                include_str!("../../../../examples/tokens-and-tls/cases/order/expected.ndjson"),
            ),
            ("cases/order/input.ndjson", include_str!("../../../../examples/tokens-and-tls/cases/order/input.ndjson")),
        ],
    },
    Example {
        name: "two-services",
        about: "Runs a gateway for clients and a writer for the store (SQLite)",
        files: &[
            ("README.md", include_str!("../../../../examples/two-services/README.md")),
            ("gateway.toml", include_str!("../../../../examples/two-services/gateway.toml")),
            ("writer.toml", include_str!("../../../../examples/two-services/writer.toml")),
            ("post.sh", include_str!("../../../../examples/two-services/post.sh")),
            ("setup.sh", include_str!("../../../../examples/two-services/setup.sh")),
            ("cases/order/case.toml", include_str!("../../../../examples/two-services/cases/order/case.toml")),
            (
                "cases/order/expected.ndjson",
                include_str!("../../../../examples/two-services/cases/order/expected.ndjson"),
            ),
            ("cases/order/input.ndjson", include_str!("../../../../examples/two-services/cases/order/input.ndjson")),
        ],
    },
    Example {
        name: "log-shippers",
        about: "Stores batches of rsyslog, syslog-ng and Fluent Bit once, although they resend them (SQLite)",
        files: &[
            ("README.md", include_str!("../../../../examples/log-shippers/README.md")),
            ("forebay.toml", include_str!("../../../../examples/log-shippers/forebay.toml")),
            ("post.sh", include_str!("../../../../examples/log-shippers/post.sh")),
            ("fluent-bit.conf", include_str!("../../../../examples/log-shippers/fluent-bit.conf")),
            ("rsyslog.conf", include_str!("../../../../examples/log-shippers/rsyslog.conf")),
            ("syslog-ng.conf", include_str!("../../../../examples/log-shippers/syslog-ng.conf")),
            (
                "cases/fluent-bit/case.toml",
                include_str!("../../../../examples/log-shippers/cases/fluent-bit/case.toml"),
            ),
            (
                "cases/fluent-bit/expected.ndjson",
                include_str!("../../../../examples/log-shippers/cases/fluent-bit/expected.ndjson"),
            ),
            (
                "cases/fluent-bit/input.ndjson",
                include_str!("../../../../examples/log-shippers/cases/fluent-bit/input.ndjson"),
            ),
            ("cases/rejected/case.toml", include_str!("../../../../examples/log-shippers/cases/rejected/case.toml")),
            (
                "cases/rejected/input.ndjson",
                include_str!("../../../../examples/log-shippers/cases/rejected/input.ndjson"),
            ),
            (
                "cases/rejected/refused.ndjson",
                include_str!("../../../../examples/log-shippers/cases/rejected/refused.ndjson"),
            ),
            ("cases/syslog/case.toml", include_str!("../../../../examples/log-shippers/cases/syslog/case.toml")),
            (
                "cases/syslog/expected.ndjson",
                include_str!("../../../../examples/log-shippers/cases/syslog/expected.ndjson"),
            ),
            ("cases/syslog/input.ndjson", include_str!("../../../../examples/log-shippers/cases/syslog/input.ndjson")),
            ("schemas/fluentbit.json", include_str!("../../../../examples/log-shippers/schemas/fluentbit.json")),
            ("schemas/syslog.json", include_str!("../../../../examples/log-shippers/schemas/syslog.json")),
        ],
    },
    Example {
        name: "redact-personal-data",
        about: "Removes, hashes and masks personal data before anything is stored (SQLite)",
        files: &[
            ("README.md", include_str!("../../../../examples/redact-personal-data/README.md")),
            ("forebay.toml", include_str!("../../../../examples/redact-personal-data/forebay.toml")),
            ("post.sh", include_str!("../../../../examples/redact-personal-data/post.sh")),
            (
                "cases/rejected/case.toml",
                include_str!("../../../../examples/redact-personal-data/cases/rejected/case.toml"),
            ),
            (
                "cases/rejected/input.ndjson",
                include_str!("../../../../examples/redact-personal-data/cases/rejected/input.ndjson"),
            ),
            (
                "cases/rejected/refused.ndjson",
                include_str!("../../../../examples/redact-personal-data/cases/rejected/refused.ndjson"),
            ),
            (
                "cases/signup/case.toml",
                include_str!("../../../../examples/redact-personal-data/cases/signup/case.toml"),
            ),
            (
                "cases/signup/expected.ndjson",
                include_str!("../../../../examples/redact-personal-data/cases/signup/expected.ndjson"),
            ),
            (
                "cases/signup/input.ndjson",
                include_str!("../../../../examples/redact-personal-data/cases/signup/input.ndjson"),
            ),
            ("schemas/signup.json", include_str!("../../../../examples/redact-personal-data/schemas/signup.json")),
        ],
    },
    Example {
        name: "retention-and-backup",
        about: "Keeps 30 days in SQLite and everything in files, and backs up the data directory",
        files: &[
            ("README.md", include_str!("../../../../examples/retention-and-backup/README.md")),
            ("forebay.toml", include_str!("../../../../examples/retention-and-backup/forebay.toml")),
            ("post.sh", include_str!("../../../../examples/retention-and-backup/post.sh")),
            ("backup.sh", include_str!("../../../../examples/retention-and-backup/backup.sh")),
            ("cases/kept/case.toml", include_str!("../../../../examples/retention-and-backup/cases/kept/case.toml")),
            (
                "cases/kept/expected.ndjson",
                include_str!("../../../../examples/retention-and-backup/cases/kept/expected.ndjson"),
            ),
            (
                "cases/kept/input.ndjson",
                include_str!("../../../../examples/retention-and-backup/cases/kept/input.ndjson"),
            ),
        ],
    },
    Example {
        name: "elasticsearch-clients",
        about: "Accepts the clients of Elasticsearch and OpenSearch, and stores each document once (SQLite)",
        files: &[
            ("README.md", include_str!("../../../../examples/elasticsearch-clients/README.md")),
            ("forebay.toml", include_str!("../../../../examples/elasticsearch-clients/forebay.toml")),
            ("post.sh", include_str!("../../../../examples/elasticsearch-clients/post.sh")),
            ("requirements.txt", include_str!("../../../../examples/elasticsearch-clients/requirements.txt")),
            ("send.py", include_str!("../../../../examples/elasticsearch-clients/send.py")),
            (
                "cases/orders/case.toml",
                include_str!("../../../../examples/elasticsearch-clients/cases/orders/case.toml"),
            ),
            (
                "cases/orders/expected.ndjson",
                include_str!("../../../../examples/elasticsearch-clients/cases/orders/expected.ndjson"),
            ),
            (
                "cases/orders/input.ndjson",
                include_str!("../../../../examples/elasticsearch-clients/cases/orders/input.ndjson"),
            ),
            ("schemas/orders.json", include_str!("../../../../examples/elasticsearch-clients/schemas/orders.json")),
        ],
    },
    Example {
        name: "opentelemetry-collector",
        about: "Accepts logs, spans and metrics of OpenTelemetry's SDKs and Collector (SQLite)",
        files: &[
            ("README.md", include_str!("../../../../examples/opentelemetry-collector/README.md")),
            ("forebay.toml", include_str!("../../../../examples/opentelemetry-collector/forebay.toml")),
            ("post.sh", include_str!("../../../../examples/opentelemetry-collector/post.sh")),
            ("collector.yaml", include_str!("../../../../examples/opentelemetry-collector/collector.yaml")),
            ("requirements.txt", include_str!("../../../../examples/opentelemetry-collector/requirements.txt")),
            ("send.py", include_str!("../../../../examples/opentelemetry-collector/send.py")),
            ("cases/logs/case.toml", include_str!("../../../../examples/opentelemetry-collector/cases/logs/case.toml")),
            (
                "cases/logs/expected.ndjson",
                include_str!("../../../../examples/opentelemetry-collector/cases/logs/expected.ndjson"),
            ),
            (
                "cases/logs/input.ndjson",
                include_str!("../../../../examples/opentelemetry-collector/cases/logs/input.ndjson"),
            ),
            ("schemas/log.json", include_str!("../../../../examples/opentelemetry-collector/schemas/log.json")),
        ],
    },
    Example {
        name: "log-to-elasticsearch",
        about: "Ships Forebay's own log to Elasticsearch or OpenSearch with rsyslog (SQLite)",
        files: &[
            ("README.md", include_str!("../../../../examples/log-to-elasticsearch/README.md")),
            ("forebay.toml", include_str!("../../../../examples/log-to-elasticsearch/forebay.toml")),
            ("post.sh", include_str!("../../../../examples/log-to-elasticsearch/post.sh")),
            ("rsyslog.conf", include_str!("../../../../examples/log-to-elasticsearch/rsyslog.conf")),
            ("cases/order/case.toml", include_str!("../../../../examples/log-to-elasticsearch/cases/order/case.toml")),
            (
                "cases/order/expected.ndjson",
                include_str!("../../../../examples/log-to-elasticsearch/cases/order/expected.ndjson"),
            ),
            (
                "cases/order/input.ndjson",
                include_str!("../../../../examples/log-to-elasticsearch/cases/order/input.ndjson"),
            ),
            ("schemas/order.json", include_str!("../../../../examples/log-to-elasticsearch/schemas/order.json")),
        ],
    },
    Example {
        name: "bridge",
        about: "Passes requests of clients to services in Go and Python over NATS (SQLite)",
        files: &[
            ("README.md", include_str!("../../../../examples/bridge/README.md")),
            ("forebay.toml", include_str!("../../../../examples/bridge/forebay.toml")),
            ("post.sh", include_str!("../../../../examples/bridge/post.sh")),
            ("worker.go", include_str!("../../../../examples/bridge/worker.go")),
            ("go.mod", include_str!("../../../../examples/bridge/go.mod")),
            ("worker.py", include_str!("../../../../examples/bridge/worker.py")),
            ("requirements.txt", include_str!("../../../../examples/bridge/requirements.txt")),
            ("cases/order/case.toml", include_str!("../../../../examples/bridge/cases/order/case.toml")),
            ("cases/order/expected.ndjson", include_str!("../../../../examples/bridge/cases/order/expected.ndjson")),
            ("cases/order/input.ndjson", include_str!("../../../../examples/bridge/cases/order/input.ndjson")),
        ],
    },
    Example {
        name: "splunk-hec",
        about: "Accepts events in Splunk's protocol, and stores each once (SQLite)",
        files: &[
            ("README.md", include_str!("../../../../examples/splunk-hec/README.md")),
            ("forebay.toml", include_str!("../../../../examples/splunk-hec/forebay.toml")),
            ("post.sh", include_str!("../../../../examples/splunk-hec/post.sh")),
            ("cases/lines/case.toml", include_str!("../../../../examples/splunk-hec/cases/lines/case.toml")),
            (
                "cases/lines/expected.ndjson",
                include_str!("../../../../examples/splunk-hec/cases/lines/expected.ndjson"),
            ),
            ("cases/lines/input.ndjson", include_str!("../../../../examples/splunk-hec/cases/lines/input.ndjson")),
            ("schemas/app-log.json", include_str!("../../../../examples/splunk-hec/schemas/app-log.json")),
        ],
    },
    Example {
        name: "segment",
        about: "Accepts calls of the SDKs of Segment and RudderStack, and stores each once (SQLite)",
        files: &[
            ("README.md", include_str!("../../../../examples/segment/README.md")),
            ("forebay.toml", include_str!("../../../../examples/segment/forebay.toml")),
            ("post.sh", include_str!("../../../../examples/segment/post.sh")),
            ("cases/rejected/case.toml", include_str!("../../../../examples/segment/cases/rejected/case.toml")),
            ("cases/rejected/input.ndjson", include_str!("../../../../examples/segment/cases/rejected/input.ndjson")),
            (
                "cases/rejected/refused.ndjson",
                include_str!("../../../../examples/segment/cases/rejected/refused.ndjson"),
            ),
            ("cases/track/case.toml", include_str!("../../../../examples/segment/cases/track/case.toml")),
            ("cases/track/expected.ndjson", include_str!("../../../../examples/segment/cases/track/expected.ndjson")),
            ("cases/track/input.ndjson", include_str!("../../../../examples/segment/cases/track/input.ndjson")),
            ("schemas/track.json", include_str!("../../../../examples/segment/schemas/track.json")),
        ],
    },
    Example {
        name: "loki",
        about: "Accepts lines in Loki's protocol, and stores each once (SQLite)",
        files: &[
            ("README.md", include_str!("../../../../examples/loki/README.md")),
            ("forebay.toml", include_str!("../../../../examples/loki/forebay.toml")),
            ("post.sh", include_str!("../../../../examples/loki/post.sh")),
            ("cases/lines/case.toml", include_str!("../../../../examples/loki/cases/lines/case.toml")),
            ("cases/lines/expected.ndjson", include_str!("../../../../examples/loki/cases/lines/expected.ndjson")),
            ("cases/lines/input.ndjson", include_str!("../../../../examples/loki/cases/lines/input.ndjson")),
        ],
    },
];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    /// All files below a folder, by their paths within it.
    fn files_below(folder: &Path, prefix: &str) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let name = |path: &PathBuf| format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
        entries
            .flat_map(|path| match path.is_dir() {
                true => files_below(&path, &format!("{}/", name(&path))),
                false => vec![name(&path)],
            })
            .collect()
    }

    #[test]
    fn table_has_every_file_of_examples() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let mut there = files_below(&folder, "");
        // A crate, and the list of all examples.
        there.retain(|path| !path.starts_with("sink-lines/") && path != "README.md");
        let mut listed: Vec<String> = Vec::new();
        for Example { name, files, .. } in EXAMPLES {
            for (path, text) in *files {
                let path = format!("{name}/{path}");
                assert_eq!(
                    fs::read_to_string(folder.join(&path)).ok().as_deref(),
                    Some(*text),
                    "{path} is another file"
                );
                listed.push(path);
            }
        }
        there.sort();
        listed.sort();
        assert_eq!(listed, there, "crates/cli/src/example/files.rs and the folder examples differ");
    }

    #[test]
    fn examples_are_small() {
        const BYTES_MAX: usize = 112 * 1024;
        let bytes: usize = EXAMPLES.iter().flat_map(|example| example.files).map(|(_, text)| text.len()).sum();
        assert!(bytes <= BYTES_MAX, "{bytes} bytes of text are within the binary");
    }

    #[test]
    fn page_lists_every_example() {
        let page = include_str!("../../../../examples/README.md");
        for Example { name, about, .. } in EXAMPLES {
            let row = format!("| [`{name}`]({name}/README.md) | {about} |");
            assert!(page.contains(&row), "examples/README.md lacks {row}");
        }
    }
}
