//! From a configuration to a connection with a server that takes writes, and whether it is still the right one.

use std::time::Duration;

use super::address::Address;
use super::config::RedisConfig;
use super::deployment::{Deployment, Sentinel};
use super::error::Failure;
use super::preflight::Durability;
use super::sentinel;
use super::session::Session;

/// After so long sentinels are asked again: a master that is cut off from them goes on answering, and what it takes
/// meanwhile is thrown away. It is less than what the journal keeps for a store that loses a tail.
const TRUST_MAX: Duration = Duration::from_secs(10);

/// Connects to the server that is written to.
pub(super) async fn open(config: &RedisConfig) -> Result<(Session, Durability), Failure> {
    match &config.deployment {
        Deployment::Alone => open_at(config, &config.server.address).await,
        Deployment::Watched(sentinels) => open_watched(config, sentinels).await,
        Deployment::Cluster(_) => Err(Failure::Odd("BUG: which of a cluster's nodes is written to depends on the key")),
    }
}

async fn open_watched(config: &RedisConfig, sentinels: &[Sentinel]) -> Result<(Session, Durability), Failure> {
    let master = sentinel::master(sentinels, &config.server.address.host, config.ca.as_deref()).await?;
    let (mut session, durability) = open_at(config, &master).await.map_err(|failure| failure.at(&master))?;
    // A master that was frozen until now says that it is one, though it may have been given up since sentinels named it.
    if is_current(config, &mut session).await {
        Ok((session, durability))
    } else {
        Err(Failure::NotReady(format!("{master}: sentinels have named another server meanwhile")))
    }
}

/// Connects to this server, if it can be written to.
pub(super) async fn open_at(config: &RedisConfig, address: &Address) -> Result<(Session, Durability), Failure> {
    let mut session = Session::open(address, &config.server, config.ca.as_deref(), config.timeout).await?;
    let durability = Durability::of(&mut session, &config.deployment).await?;
    Ok((session, durability))
}

/// Whether an open connection can be used, and leads to where one that is made now would.
pub(super) async fn is_current(config: &RedisConfig, session: &mut Session) -> bool {
    if !session.is_fresh().await {
        return false;
    }
    let Deployment::Watched(sentinels) = &config.deployment else { return true };
    if session.is_trusted(TRUST_MAX) {
        return true;
    }
    match sentinel::master(sentinels, &config.server.address.host, config.ca.as_deref()).await {
        Ok(master) if master != *session.address() => false,
        // Where no sentinel answers the master may be well all the same.
        _ => {
            session.trust();
            true
        }
    }
}
