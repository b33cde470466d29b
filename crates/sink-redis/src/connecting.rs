//! From a configuration to a connection with a server that takes writes, and whether it is still the right one.

use std::time::Duration;

use super::address::Address;
use super::config::RedisConfig;
use super::deployment::Deployment;
use super::error::Failure;
use super::preflight;
use super::sentinel;
use super::session::Session;

/// After so long sentinels are asked again: a master that is cut off from them goes on answering, and what it takes
/// meanwhile is thrown away. It is less than what the journal keeps for a store that loses a tail.
const TRUST_MAX: Duration = Duration::from_secs(10);

/// Connects to the server that is written to, outside a cluster, and says what it may lose.
pub(super) async fn open(config: &RedisConfig) -> Result<(Session, Option<String>), Failure> {
    let Deployment::Watched(sentinels) = &config.deployment else {
        return open_at(config, &config.server.address).await;
    };
    let master = sentinel::master(sentinels, &config.server.address.host, config.ca.as_deref()).await?;
    let (mut session, warning) = open_at(config, &master).await.map_err(|failure| failure.at(&master))?;
    // A master that was frozen until now says that it is one, though it may have been given up since sentinels named it.
    if is_current(config, &mut session).await {
        Ok((session, warning))
    } else {
        Err(Failure::NotReady(format!("{master}: sentinels have named another server meanwhile")))
    }
}

/// Connects to this server, if it can be written to, and says what it may lose.
pub(super) async fn open_at(config: &RedisConfig, address: &Address) -> Result<(Session, Option<String>), Failure> {
    let mut session = Session::open(address, &config.server, config.ca.as_deref(), config.timeout).await?;
    let warning = preflight::inspect(&mut session, &config.deployment).await?;
    Ok((session, warning))
}

/// Whether an open connection can be used, and leads to where one that is made now would.
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
        // Where no sentinel answers the master may be well all the same.
        _ => {
            session.trust();
            true
        }
    }
}
