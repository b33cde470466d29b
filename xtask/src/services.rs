//! `cargo xtask services`: the programs that benchmarks and campaigns need in addition to Rust and a C compiler.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::{has_program, run};
use crate::{bridge_workers, duckdb, kubernetes_schema, nats, opensearch, schema_suite};

/// Options of `cargo xtask services`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only report what is missing; fails if something is.
    #[arg(long)]
    check: bool,
}

struct Service {
    program: &'static str,
    package: &'static str,
    purpose: &'static str,
}

/// A part of the package that only this package has.
const RSYSLOG_MODULE: &str = if cfg!(target_arch = "aarch64") {
    "/usr/lib/aarch64-linux-gnu/rsyslog/omelasticsearch.so"
} else {
    "/usr/lib/x86_64-linux-gnu/rsyslog/omelasticsearch.so"
};

const SERVICES: &[Service] = &[
    Service { program: "wrk", package: "wrk", purpose: "load of single requests in benchmarks" },
    Service { program: "ab", package: "apache2-utils", purpose: "the same by another program" },
    Service { program: "sqlite3", package: "sqlite3", purpose: "an eye on stored events that isn't our own" },
    Service { program: "promtool", package: "prometheus", purpose: "checks the format of /metrics" },
    Service { program: "nginx", package: "nginx-light", purpose: "a proxy before the intake port, in tests" },
    Service { program: "haproxy", package: "haproxy", purpose: "another one" },
    Service { program: "dockerd", package: "docker.io", purpose: "runs the containers of `cargo xtask scale`" },
    Service { program: "docker-compose", package: "docker-compose", purpose: "checks the files in deploy/" },
    Service { program: "rg", package: "ripgrep", purpose: "what `load --match` is measured against" },
    Service {
        program: "pip3",
        package: "python3-pip",
        purpose: "fetches the JSON-Schema-Test-Suite, DuckDB, the schemas of Kubernetes and a client of NATS",
    },
    Service {
        program: "pg_createcluster",
        package: "postgresql",
        purpose: "a store to test the sink for PostgreSQL on",
    },
    Service { program: "pgbouncer", package: "pgbouncer", purpose: "a pooler before it, in tests" },
    Service { program: "redis-server", package: "redis-server", purpose: "a store to test the sink for Redis on" },
    Service { program: "etcd", package: "etcd-server", purpose: "the registry of writers, in tests" },
    Service { program: "etcdctl", package: "etcd-client", purpose: "an independent client of it, in tests" },
    Service { program: "java", package: "default-jre-headless", purpose: "runs OpenSearch, a store to test sinks on" },
    Service { program: "mvn", package: "maven", purpose: "fetches it" },
    Service { program: "memcached", package: "memcached", purpose: "what Swift needs" },
    Service {
        program: "swift-proxy-server",
        package: "swift-proxy",
        purpose: "a store to test the sinks for Swift and S3 on",
    },
    Service { program: "swift-account-server", package: "swift-account", purpose: "a part of it" },
    Service { program: "swift-container-server", package: "swift-container", purpose: "a part of it" },
    Service { program: "swift-object-server", package: "swift-object", purpose: "a part of it" },
    Service { program: "swift", package: "python3-swiftclient", purpose: "what objects in Swift are measured against" },
    Service {
        program: "systemd-analyze",
        package: "systemd",
        purpose: "rates units, and runs them in the test of the package",
    },
    Service { program: "adduser", package: "adduser", purpose: "creates the package's user" },
    Service { program: "deb-systemd-invoke", package: "init-system-helpers", purpose: "starts the package's service" },
    Service {
        program: RSYSLOG_MODULE,
        package: "rsyslog-elasticsearch",
        purpose: "rsyslog with its module for Elasticsearch, which runs in the test of an example",
    },
    Service {
        program: "chromium",
        package: "chromium",
        purpose: "opens the console, and sends from a web page, in tests",
    },
    Service { program: "strace", package: "strace", purpose: "shows and breaks system calls" },
];

/// Installs the missing programs, or names them.
pub(crate) fn install(arguments: &Arguments) -> Result<()> {
    let missing = missing();
    if arguments.check {
        return require_all();
    }
    if !missing.is_empty() {
        install_programs(&missing)?;
    } else if schema_suite::is_there()
        && duckdb::PACKAGE.is_there()
        && kubernetes_schema::PACKAGE.is_there()
        && opensearch::is_there()
        && nats::is_there()
        && bridge_workers::are_there()
    {
        println!("nothing to install");
        return Ok(());
    }
    if !schema_suite::is_there() {
        schema_suite::fetch()?;
    }
    duckdb::PACKAGE.fetch()?;
    kubernetes_schema::PACKAGE.fetch()?;
    if !has_program("go") {
        println!(
            "left out: NATS and the worker of examples/bridge, which are built with Go 1.21 or later; tests on them are skipped"
        );
    }
    if !nats::is_there() {
        nats::build()?;
    }
    if !bridge_workers::are_there() {
        bridge_workers::build()?;
    }
    if opensearch::is_there() { Ok(()) } else { opensearch::fetch() }
}

fn install_programs(missing: &[&Service]) -> Result<()> {
    if !has_program("apt-get") {
        bail!("no apt-get here: install these by hand: {}", names(missing));
    }
    let packages = missing.iter().map(|service| service.package);
    run(apt_get().arg("update").arg("--quiet"))?;
    run(apt_get().args(["install", "--yes", "--no-install-recommends"]).args(packages))
        .context("installing needs root, or sudo")
}

/// Fails if something is missing, and names the purpose of each.
pub(crate) fn require_all() -> Result<()> {
    let missing = missing();
    for service in &missing {
        println!("missing: {} (package {}): {}", service.program, service.package, service.purpose);
    }
    if !missing.is_empty() {
        bail!("{} programs are missing: `cargo xtask services` installs them", missing.len());
    }
    if !schema_suite::is_there() {
        bail!("the JSON-Schema-Test-Suite is missing: `cargo xtask services` fetches it");
    }
    if !duckdb::PACKAGE.is_there() {
        bail!("DuckDB is missing: `cargo xtask services` fetches it");
    }
    if !kubernetes_schema::PACKAGE.is_there() {
        bail!("the schemas of Kubernetes are missing: `cargo xtask services` fetches them");
    }
    if !opensearch::is_there() {
        bail!("OpenSearch is missing: `cargo xtask services` fetches it");
    }
    if !nats::is_there() {
        bail!("NATS is missing: `cargo xtask services` builds it");
    }
    if !bridge_workers::are_there() {
        bail!("the workers of examples/bridge are missing: `cargo xtask services` builds them");
    }
    Ok(())
}

fn missing() -> Vec<&'static Service> {
    SERVICES.iter().filter(|service| !has_program(service.program)).collect()
}

fn names(services: &[&Service]) -> String {
    services.iter().map(|service| service.program).collect::<Vec<_>>().join(", ")
}

fn apt_get() -> Command {
    let mut command = if rustix::process::geteuid().is_root() {
        Command::new("apt-get")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.arg("apt-get");
        sudo
    };
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}
