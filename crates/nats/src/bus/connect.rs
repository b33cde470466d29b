//! Connects to one of the servers: those of the URL first, then those that a server has named, each in random order.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use random::Random;
use tokio::net::lookup_host;
use tokio::time::timeout;

use super::shared::Shared;
use crate::error::Error;
use crate::greeting::Greeting;
use crate::server::Host;
use crate::wire::Wire;

/// How long an address may take to accept a connection, TLS and login included, and a name server to respond.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection with its server's description and address.
pub(super) type Connected = (Wire, Greeting, String);

/// Connects to the first server that accepts the login; else returns the last failure.
pub(super) async fn connect(shared: &Shared, random: &mut Random) -> Result<Connected, Error> {
    let own = &shared.options.servers.hosts;
    let mut hosts = shuffled(own.clone(), random);
    let discovered = shared.discovered.borrow().clone();
    hosts.extend(shuffled(discovered.into_iter().filter(|host| !own.contains(host)).collect(), random));
    let mut failure = Error::Unexpected("no server is configured");
    for host in &hosts {
        match at_host(shared, host, random).await {
            Ok(connected) => return Ok(connected),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn at_host(shared: &Shared, host: &Host, random: &mut Random) -> Result<Connected, Error> {
    let found = within(async { Ok(lookup_host((host.name.as_str(), host.port)).await?.collect()) }).await?;
    // The certificate of a server that is known by its address only has the name that the URL has.
    let own = shared.options.servers.hosts.first().filter(|_| host.name.parse::<IpAddr>().is_ok());
    let name = &own.unwrap_or(host).name;
    let mut failure = Error::Unexpected("the server's name has no address");
    for address in shuffled::<SocketAddr>(found, random) {
        match within(Wire::open(&shared.options, (name, host.port), Some(address), b"")).await {
            Ok((wire, greeting)) => return Ok((wire, greeting, host.to_string())),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn within<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    timeout(CONNECT_TIMEOUT, work).await.unwrap_or(Err(Error::NoResponse(CONNECT_TIMEOUT)))
}

fn shuffled<T>(mut all: Vec<T>, random: &mut Random) -> Vec<T> {
    for end in (1..all.len()).rev() {
        all.swap(end, random.index(end + 1));
    }
    all
}
