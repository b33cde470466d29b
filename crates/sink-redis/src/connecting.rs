//! Opens a connection to a server that accepts writes, and checks whether it is still the right one.

use std::time::Duration;

use super::address::Address;
use super::config::RedisConfig;
use super::deployment::Deployment;
use super::error::Failure;
use super::preflight;
use super::sentinel;
use super::session::Session;

/// After this time the sentinels are asked again. A master that is isolated from them still responds, and the writes
/// that it accepts are discarded. The time is less than the failover window of the journal.
const TRUST_MAX: Duration = Duration::from_secs(10);

/// Connects to the server to write to, outside a cluster, and returns what it may lose.
pub(super) async fn open(config: &RedisConfig) -> Result<(Session, Option<String>), Failure> {
    let Deployment::Watched(sentinels) = &config.deployment else {
        return open_at(config, &config.server.address).await;
    };
    let master = sentinel::master(sentinels, &config.server.address.host, config.ca.as_deref()).await?;
    let (mut session, warning) = open_at(config, &master).await.map_err(|failure| failure.at(&master))?;
    // A master that was frozen until now reports that it is one, although sentinels may have replaced it since they
    // named it.
    if is_current(config, &mut session).await {
        Ok((session, warning))
    } else {
        Err(Failure::NotReady(format!("{master}: the sentinels have named another master since. Forebay reconnects")))
    }
}

/// Connects to this server, if it passes the checks, and returns what it may lose.
pub(super) async fn open_at(config: &RedisConfig, address: &Address) -> Result<(Session, Option<String>), Failure> {
    let mut session = Session::open(address, &config.server, config.ca.as_deref(), config.timeout).await?;
    let warning = preflight::inspect(&mut session, &config.deployment).await?;
    Ok((session, warning))
}

/// Whether an open connection can be used, and reaches the same server as a new one would.
pub(super) async fn is_current(config: &RedisConfig, session: &mut Session) -> bool {
    if !session.check_fresh().await {
        return false;
    }
    let Deployment::Watched(sentinels) = &config.deployment else { return true };
    if session.is_trusted(TRUST_MAX) {
        return true;
    }
    match sentinel::master(sentinels, &config.server.address.host, config.ca.as_deref()).await {
        Ok(master) if master != *session.address() => false,
        // If no sentinel responds, the master may still be healthy.
        _ => {
            session.trust();
            true
        }
    }
}
