//! Writers in a network namespace: the link to them is cut and restored, and a gateway loses its disk during a cut.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::Setup;
use super::traffic::{Sent, expect_none_doubled, ranges, send_during, stored};
use crate::report::{Bar, Row};
use crate::server::{Launch, ProcessRole, Server};
use crate::store::{CampaignStore, PostgresStore, StoreServer};
use crate::two_services::{SinkSpec, gateway_config, writer_config};
use crate::workspace::run as run_command;

const WRITERS: u16 = 2;
const WRITER_PORT: u16 = 8081;
const PER_SECOND: u32 = 500;
const BEFORE: Duration = Duration::from_secs(2);
const CUT: Duration = Duration::from_secs(8);
const SINK: &str = "warehouse";

/// Cuts and restores the link, and deletes a disk during another cut. Fails if an event is lost or doubled that should not be.
pub(super) fn run(setup: &Setup) -> Result<Vec<Row>> {
    let mut store = PostgresStore::require()?;
    let settings = store.sink();
    let network = Network::new()?;
    let sink = [SinkSpec { name: SINK, settings: &settings }];
    let writers = network.writers(setup, &format!("[writer]\nallow_anonymous = true\n\n{}", writer_config(&sink)))?;
    let addresses: Vec<SocketAddr> = writers.iter().map(|(launch, _)| launch.intake).collect();
    let config = gateway_config(&addresses, &sink)?;
    let launch = Launch::fresh(ProcessRole::Gateway, &setup.binary, &setup.folder.join("gateway"), &config)?;
    let gateway = launch.ready()?;
    let healed = cut_and_heal(&network, &launch, &gateway)?;
    let (lost, gateway, sent) = lose_disk(&network, &launch, gateway)?;
    gateway.stop()?;
    let rows = stored(&mut store.payloads(&setup.folder)?)?;
    expect_none_doubled(&rows)?;
    let acknowledged: BTreeSet<u64> = sent.into_iter().flat_map(|sent| sent.acknowledged).collect();
    let missing: Vec<u64> = acknowledged.iter().filter(|event| !rows.contains_key(event)).copied().collect();
    println!("lost with the gateway's disk, by the clients' numbers: {}", ranges(missing.iter().copied()));
    let wrongly: Vec<u64> = missing.into_iter().filter(|event| !lost.contains(event)).collect();
    if !wrongly.is_empty() {
        println!("lost, though the deleted disk wasn't all that had them: {}", ranges(wrongly.iter().copied()));
    }
    let healing = "a cut of 8 s: from the cable's return until all is stored";
    let lost = "events lost that were not on the deleted disk alone";
    Ok(vec![
        Row::alone(healing, "s", healed.as_secs_f64(), Bar::AtMost(35.0)),
        Row::alone(lost, "", wrongly.len() as f64, Bar::AtMost(0.0)),
    ])
}

/// Sends events through a cut. Returns the time from the link's return until all are stored.
fn cut_and_heal(network: &Network, launch: &Launch, gateway: &Server) -> Result<Duration> {
    let cut = || {
        thread::sleep(BEFORE);
        network.set_cable("down")?;
        thread::sleep(CUT);
        let pending = gateway.pending()?;
        network.set_cable("up")?;
        Ok((pending, Instant::now()))
    };
    let (sent, (pending, back)) = send_during(launch.intake, PER_SECOND, 0, cut)?;
    sent.expect_none_failed()?;
    gateway.wait_stored()?;
    println!("cut for {CUT:?}: {pending} events waited, all {} were stored", sent.acknowledged.len());
    Ok(back.elapsed())
}

/// Deletes the disk of a gateway that is cut off, and continues with an empty one. Returns the events that may be lost, the new gateway, and the
/// clients' records.
fn lose_disk(network: &Network, launch: &Launch, gateway: Server) -> Result<(BTreeSet<u64>, Server, Vec<Sent>)> {
    let send = |first| -> Result<Sent> {
        let wait = || {
            thread::sleep(BEFORE);
            Ok(())
        };
        let (sent, ()) = send_during(launch.intake, PER_SECOND, first, wait)?;
        sent.expect_none_failed()?;
        Ok(sent)
    };
    let before = send(1_000_000)?;
    gateway.wait_stored()?;
    network.set_cable("down")?;
    let during = send(2_000_000)?;
    let pending = gateway.pending()?;
    gateway.kill()?;
    fs::remove_dir_all(&launch.data).context("deleting the gateway's disk")?;
    network.set_cable("up")?;
    let gateway = launch.ready()?;
    let after = send(3_000_000)?;
    gateway.wait_stored()?;
    println!("the disk was deleted with {pending} pending events of {}", during.acknowledged.len());
    Ok((during.acknowledged.clone(), gateway, vec![before, during, after]))
}

/// A network namespace with a virtual link to it. Both are removed when the value is dropped.
struct Network {
    name: String,
    cable: String,
    /// The third byte of its addresses.
    number: u8,
}

impl Network {
    fn new() -> Result<Self> {
        let id = std::process::id();
        let network = Self { name: format!("forebay-{id}"), cable: format!("fb{id}"), number: (id % 250) as u8 };
        let Self { name, cable, .. } = &network;
        let [near, far] = [1, 2].map(|host| format!("{}/30", network.address(host)));
        for arguments in [
            vec!["netns", "add", name],
            vec!["link", "add", cable, "type", "veth", "peer", "name", "far", "netns", name],
            vec!["address", "add", &near, "dev", cable],
            vec!["-n", name, "address", "add", &far, "dev", "far"],
            vec!["link", "set", cable, "up"],
            vec!["-n", name, "link", "set", "far", "up"],
            vec!["-n", name, "link", "set", "lo", "up"],
        ] {
            ip(&arguments).context("making a network namespace, which needs root")?;
        }
        Ok(network)
    }

    fn address(&self, host: u8) -> IpAddr {
        Ipv4Addr::new(10, 251, self.number, host).into()
    }

    /// Cuts the link, or restores it. A cut drops packets, and no side gets an error.
    fn set_cable(&self, state: &str) -> Result<()> {
        ip(&["-n", &self.name, "link", "set", "far", state])
    }

    fn writers(&self, setup: &Setup, config: &str) -> Result<Vec<(Launch, Server)>> {
        let program = self.program(&setup.binary, &setup.folder)?;
        let writer = |number| {
            let folder = setup.folder.join(format!("writer-{number}"));
            let mut launch = Launch::fresh(ProcessRole::Writer, &program, &folder, config)?;
            launch.intake = SocketAddr::new(self.address(2), WRITER_PORT + number);
            let server = launch.ready()?;
            Ok((launch, server))
        };
        (0..WRITERS).map(writer).collect()
    }

    /// A script that runs the server in the namespace.
    fn program(&self, binary: &Path, folder: &Path) -> Result<PathBuf> {
        let path = folder.join("in-namespace");
        let text = format!("#!/bin/sh\nexec ip netns exec {} {} \"$@\"\n", self.name, binary.display());
        fs::write(&path, text).and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o755)))?;
        Ok(path)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // Deleting the namespace deletes the link.
        let _ = ip(&["netns", "delete", &self.name]);
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    run_command(Command::new("ip").args(arguments))
}
