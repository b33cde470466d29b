//! Gateway and writer as two services: their configurations, and a running pair.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::server::{Launch, ProcessRole, Server};

/// A sink: its name, and its settings as the writer has them.
#[derive(Clone, Copy, Debug)]
pub struct SinkSpec<'a> {
    /// The name in both configurations.
    pub name: &'a str,
    /// The table of the writer, without its first line.
    pub settings: &'a str,
}

impl<'a> SinkSpec<'a> {
    /// The kind of store, which the gateway names too.
    fn kind(&self) -> Result<&'a str> {
        let kind = self.settings.lines().find_map(|line| line.strip_prefix("kind = \"")?.strip_suffix('"'));
        kind.with_context(|| format!("the settings of the sink {} name no kind", self.name))
    }
}

/// The upstream of all writers, as a part of a gateway's configuration.
pub fn upstream(writers: &[SocketAddr]) -> String {
    let servers: Vec<String> = writers.iter().map(|writer| format!("http://{writer}")).collect();
    format!("[upstreams.back]\nservers = {servers:?}\n\n")
}

/// A gateway that sends every event to each of these sinks, through the writers.
pub fn gateway_config(writers: &[SocketAddr], sinks: &[SinkSpec<'_>]) -> Result<String> {
    let routes: Vec<&str> = sinks.iter().map(|sink| sink.name).collect();
    let mut config = format!("{}[types.\"*\"]\nroutes = {routes:?}\n\n", upstream(writers));
    for sink in sinks {
        config.push_str(&remote_sink(sink)?);
    }
    Ok(config)
}

/// A sink as the gateway has it.
pub fn remote_sink(sink: &SinkSpec<'_>) -> Result<String> {
    let (name, kind) = (sink.name, sink.kind()?);
    // A gateway builds the objects, so it needs the settings for them.
    let of_objects = ["codec", "format", "object", "envelope", "max_bytes", "max_records", "max_age"];
    let key = |line: &str| line.split_once('=').map(|(key, _)| key.trim().to_owned());
    let has_objects = ["directory", "s3", "swift"].contains(&kind);
    let lines =
        sink.settings.lines().filter(|line| has_objects && key(line).is_some_and(|key| of_objects.contains(&&*key)));
    let settings: String = lines.flat_map(|line| [line, "\n"]).collect();
    // SQLite is read anyway.
    let read = if kind == "postgres" { "read = true\n" } else { "" };
    Ok(format!("[sinks.{name}]\nkind = \"writer\"\nupstream = \"back\"\nstore = \"{kind}\"\n{read}{settings}\n"))
}

/// A writer that offers these sinks.
pub fn writer_config(sinks: &[SinkSpec<'_>]) -> String {
    let mut config = String::new();
    for SinkSpec { name, settings } in sinks {
        // A String accepts any text.
        let _ = writeln!(config, "[sinks.{name}]\n{settings}");
    }
    config
}

/// A gateway and its writer.
pub struct Pair {
    /// How the gateway was started: its addresses.
    pub launch: Launch,
    /// The front-end.
    pub gateway: Server,
    /// The back-end.
    pub writer: Server,
}

impl Pair {
    /// Starts both with empty directories within `folder`, the writer first.
    pub fn start(binary: &Path, folder: &Path, sink: SinkSpec<'_>) -> Result<Self> {
        let launch =
            |role: ProcessRole, config: &str| Launch::fresh(role, binary, &folder.join(role.subcommand()), config);
        let behind = launch(ProcessRole::Writer, &writer_config(&[sink]))?;
        let writer = behind.ready()?;
        let launch = launch(ProcessRole::Gateway, &gateway_config(&[behind.intake], &[sink])?)?;
        Ok(Self { gateway: launch.ready()?, launch, writer })
    }

    /// User and system time of both.
    pub fn cpu(&self) -> Result<Duration> {
        Ok(self.gateway.process.cpu()? + self.writer.process.cpu()?)
    }

    /// Resident bytes of both.
    pub fn memory(&self) -> Result<u64> {
        Ok(self.gateway.process.memory()?.now + self.writer.process.memory()?.now)
    }

    /// Stops both in an orderly way.
    pub fn stop(self) -> Result<()> {
        self.gateway.stop().context("stopping the gateway")?;
        self.writer.stop().context("stopping the writer")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_name_the_same_sink_and_kind() {
        let sink = SinkSpec { name: "warehouse", settings: "kind = \"postgres\"\nurl = \"postgres://db\"\n" };
        let writer = "127.0.0.1:8081".parse().unwrap();
        let gateway = gateway_config(&[writer], &[sink]).unwrap();
        assert!(gateway.contains("servers = [\"http://127.0.0.1:8081\"]"), "{gateway}");
        assert!(gateway.contains("[sinks.warehouse]\nkind = \"writer\"\n"), "{gateway}");
        assert!(gateway.contains("store = \"postgres\"") && !gateway.contains("postgres://"), "{gateway}");
        assert!(writer_config(&[sink]).starts_with("[sinks.warehouse]\nkind = \"postgres\"\nurl"));
        assert!(gateway_config(&[writer], &[SinkSpec { name: "x", settings: "url = \"u\"\n" }]).is_err());
    }
}
