//! Senders from the module proxy of Go: a client of Elasticsearch, and the OpenTelemetry Collector.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use testkit::ports::free_address;

use super::feed::Feed;
use super::installed::{ensure, folder, source, text};
use super::sender::{ALL, Sender, Start, Started};
use super::settings::{Extra, Place};
use crate::workspace::{copy, run};

/// The builder of collectors. The versions of the parts are in `builder.yaml`.
const BUILDER: &str = "go.opentelemetry.io/collector/cmd/builder@v0.165.0";

/// The senders that are built.
pub(super) const SENDERS: &[Sender] = &[
    sender("go-elasticsearch", Place::Root("es"), start_client),
    sender("collector-protobuf", Place::Path("/otlp"), |start| start_collector(start, "proto")),
    sender("collector-json", Place::Root("otlp"), |start| start_collector(start, "json")),
];

const fn sender(name: &'static str, place: Place, start: fn(&Start<'_>) -> Result<Started>) -> Sender {
    Sender { name, place, extra: Extra::Nothing, least: ALL, start }
}

fn start_client(start: &Start<'_>) -> Result<Started> {
    Ok(start.program(Command::new(folder("go")?.join("client"))))
}

fn start_collector(start: &Start<'_>, encoding: &str) -> Result<Started> {
    let listen = free_address();
    let text = text("collector.yaml")?.replace("LISTEN", &listen.to_string()).replace("URL", start.url);
    let config = start.write("collector.yaml", &text.replace("ENCODING", encoding))?;
    let mut command = Command::new(folder("go")?.join("collector").join("otelcol"));
    command.arg("--config").arg(config);
    Ok(Started { command, feed: Some(Feed::Otlp(listen)) })
}

/// Builds the programs. The first build of the collector takes minutes.
pub(super) fn install() -> Result<()> {
    let pins = [BUILDER, &text("builder.yaml")?, &text("go.mod")?, &text("client.go")?].concat();
    ensure("go", &pins, |folder| {
        build_client(folder)?;
        run(go().args(["install", BUILDER]).env("GOBIN", folder)).context("the builder of collectors")?;
        // The builder's paths are relative to the folder of its process, and `run` sets that to the workspace's.
        let description = text("builder.yaml")?.replace("./collector", &folder.join("collector").to_string_lossy());
        let config = folder.join("builder.yaml");
        std::fs::write(&config, description).with_context(|| format!("writing {}", config.display()))?;
        let mut builder = Command::new(folder.join("builder"));
        run(builder.arg("--config").arg(config).env("CGO_ENABLED", "0")).context("building the collector")
    })
    .map(drop)
}

fn build_client(folder: &Path) -> Result<()> {
    let sources = folder.join("sources");
    for name in ["client.go", "go.mod"] {
        copy(&source(name)?, &sources.join(name))?;
    }
    let mut build = go();
    build.arg("-C").arg(&sources).args(["build", "-mod=mod", "-o"]).arg(folder.join("client")).arg(".");
    run(&mut build).context("building the client of Elasticsearch")
}

fn go() -> Command {
    let mut go = Command::new("go");
    go.env("CGO_ENABLED", "0");
    go
}
