//! `lab up --bus`: NATS with two services, etcd where the writers register, and what gateways and writers need for both.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::READY_LIMIT;
use super::layout::Ports;
use crate::http::{self, Connection};
use crate::two_services::{SinkSpec, gateway_config, upstream, writer_config};
use crate::wait::until;
use crate::workspace::has_program;
use crate::{bridge_workers, nats};

/// Fails if a program is missing.
pub(super) fn require() -> Result<()> {
    if !has_program("etcd") || !has_program("go") || !nats::is_there() {
        bail!("etcd, Go or NATS is missing: `cargo xtask services` installs them, except Go");
    }
    // Not a part of the time that the lab takes.
    bridge_workers::build()
}

/// Whether everything was installed.
pub(super) fn is_there() -> bool {
    has_program("etcd") && has_program("go") && nats::is_there() && bridge_workers::are_there()
}

/// The servers that everything else uses, with their addresses.
pub(super) fn servers(ports: Ports, folder: &Path) -> Result<[(&'static str, Command, SocketAddr); 2]> {
    let mut nats = Command::new(nats::program()?);
    let listen = ports.nats();
    nats.args(["--addr", &listen.ip().to_string(), "--port", &listen.port().to_string()]);
    let (client, peer) = ports.etcd();
    let (client_url, peer_url) = (format!("http://{client}"), format!("http://{peer}"));
    let mut etcd = Command::new("etcd");
    etcd.arg("--data-dir").arg(folder.join("etcd"));
    etcd.args(["--listen-client-urls", &client_url, "--advertise-client-urls", &client_url]);
    etcd.args(["--listen-peer-urls", &peer_url, "--initial-advertise-peer-urls", &peer_url]);
    etcd.args(["--initial-cluster", &format!("default={peer_url}")]);
    Ok([("nats", nats, listen), ("etcd", etcd, client)])
}

/// The services of the bridge, with their names.
pub(super) fn workers(ports: Ports) -> Result<[(&'static str, Command); 2]> {
    bridge_workers::commands(&url(ports))
}

pub(super) fn is_open(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_ok()
}

fn url(ports: Ports) -> String {
    format!("nats://{}", ports.nats())
}

fn endpoints(ports: Ports) -> String {
    format!("endpoints = [\"http://{}\"]\n\n", ports.etcd().0)
}

/// A writer that registers in etcd and answers reads over the bus.
pub(super) fn writer(ports: Ports, number: u16, sinks: &[SinkSpec<'_>]) -> String {
    format!(
        "[writer]\nadvertise = \"http://{}\"\n\n[writer.etcd]\n{}[bus]\nurl = \"{}\"\n\n\
         [bus.events]\nsubject = \"forebay.events.get\"\n\n{}",
        ports.writer(number).0,
        endpoints(ports),
        url(ports),
        writer_config(sinks)
    )
}

/// A gateway that finds the writers in etcd, and passes requests to the services.
pub(super) fn gateway(ports: Ports, sinks: &[SinkSpec<'_>]) -> Result<String> {
    let found = format!("[upstreams.back.etcd]\n{}", endpoints(ports));
    let config = gateway_config(&[], sinks)?.replace(&upstream(&[]), &found);
    Ok(format!(
        "{config}[bus]\nurl = \"{}\"\n\n\
         [[bridge]]\npath = \"/prices/{{product}}\"\nsubject = \"shop.prices.get\"\n\n\
         [[bridge]]\npath = \"/orders/{{id}}\"\nsubject = \"shop.orders.get\"\n",
        url(ports)
    ))
}

/// Waits until both services answer through HAProxy, the second one from the store.
pub(super) fn wait_ready(ports: Ports) -> Result<()> {
    let status = |path: &str| http::get(ports.front(), path).map(|answer| answer.status).unwrap_or_default();
    until("the service in Go answers", READY_LIMIT, || Ok(status("/prices/tea") == 200))?;
    // 404: the service has asked a writer, and the store has no such event.
    let unknown = format!("/orders/{}", "00000000-0000-0000-0000-000000000000");
    until("the service in Python answers", READY_LIMIT, || Ok(status(&unknown) == 404))
}

/// An event that is posted at the front is an answer of the service.
pub(super) fn check(ports: Ports) -> Result<()> {
    let headers = ["Accept: application/json", "Forebay-Ack: stored"];
    let request = http::post("/ingest/event/order", &headers, b"{\"product\":\"tea\"}");
    let answer = Connection::open(ports.front())?.send(&request)?;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let id = text.split_once("\"id\":\"").and_then(|(_, rest)| rest.get(..36));
    let id = id.with_context(|| format!("{} isn't the answer to an event: {text}", answer.status))?;
    let answer = http::get(ports.front(), &format!("/orders/{id}"))?;
    let text = String::from_utf8_lossy(&answer.body);
    if answer.status != 200 || !text.contains("tea") {
        bail!("the service in Python answered {}: {text}", answer.status);
    }
    Ok(())
}
