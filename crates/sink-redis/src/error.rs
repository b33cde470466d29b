//! What Redis' errors mean for delivery, with advice for the operator.

use std::fmt;
use std::io;
use std::time::Duration;

use super::address::Address;
use super::config::RedisConfig;
use super::deployment::Deployment;
use net::stream::is_of_trust;
use sink::CLAIMED_BY_ANOTHER;
use sink::{Mark, SinkError};

/// Why a call failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server's error: a word in capitals, and a message.
    Server(String),
    /// The connection couldn't be opened, or broke.
    Connection(io::Error),
    /// No response for this long.
    NoResponse(Duration),
    /// The sink was closed during the call.
    Closed,
    /// The server doesn't have the required settings.
    Misfit(String),
    /// The server isn't ready, which may be temporary.
    NotReady(String),
    /// A lane's cursor is before what was stored.
    LostTail {
        /// The cursor.
        position: u64,
        /// The position up to which it was stored.
        stored: u64,
    },
    /// Another process has claimed the lane.
    Claimed,
    /// It is another store than the batch's: the one with this store id.
    OtherStore(Mark),
    /// The server's response is invalid.
    Unexpected(&'static str),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
    }
}

/// What happened, without advice.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(said) | Self::Misfit(said) | Self::NotReady(said) => f.write_str(said),
            Self::Connection(error) => error.fmt(f),
            Self::NoResponse(limit) => write!(f, "no response within {limit:?}"),
            Self::Closed => f.write_str("Forebay cancelled the call, because the sink was closed"),
            Self::LostTail { position, stored } => write!(
                f,
                "the lane's cursor is {position}, but {stored} was stored \
                 before"
            ),
            Self::Claimed => f.write_str(CLAIMED_BY_ANOTHER),
            Self::OtherStore(mark) => SinkError::OtherStore(*mark).fmt(f),
            Self::Unexpected(what) => f.write_str(what),
        }
    }
}

impl Failure {
    /// The same failure with the address of its server, if that isn't the configured one.
    pub(super) fn at(self, address: &Address) -> Self {
        match self {
            Self::Server(said) => Self::Server(said),
            Self::Connection(error) => Self::Connection(io::Error::new(error.kind(), format!("{address}: {error}"))),
            Self::NoResponse(limit) => Self::NotReady(format!("{address}: no response within {limit:?}")),
            Self::Misfit(why) => Self::Misfit(format!("{address}: {why}")),
            Self::NotReady(why) => Self::NotReady(format!("{address}: {why}")),
            Self::Unexpected(_) | Self::Closed | Self::Claimed | Self::OtherStore(_) | Self::LostTail { .. } => self,
        }
    }

    pub(super) fn into_sink_error(self, config: &RedisConfig) -> SinkError {
        let place = format!("Redis {}, key {}", config.place(), config.key);
        let unavailable = |why: String| SinkError::Unavailable(format!("{place}: {why}").into());
        let misconfigured = |why: String| SinkError::Misconfigured(format!("{place}: {why}").into());
        match self {
            Self::Server(said) => match advice(&said, &config.deployment) {
                Advice::Wait(Some(advice)) => unavailable(format!("{said}: {advice}")),
                Advice::Wait(None) => unavailable(said),
                Advice::Fix(advice) => misconfigured(format!("{said}: {advice}")),
            },
            Self::Connection(error) if is_of_trust(&error) => misconfigured(net::tls::in_configuration(&error)),
            Self::NoResponse(_) => {
                unavailable(format!("{self}. Check the server and the network. Forebay retries, and no event is lost"))
            }
            Self::Misfit(why) => misconfigured(why),
            Self::LostTail { position, stored } => unavailable(format!(
                "the lane's cursor is {position}, but {stored} was stored before: the server was emptied, lost data \
                 that wasn't on its disk, or failed over. Forebay reads the cursor again before the next write"
            )),
            Self::OtherStore(mark) => SinkError::OtherStore(mark),
            Self::Connection(_) | Self::Closed | Self::NotReady(_) | Self::Claimed | Self::Unexpected(_) => {
                unavailable(self.to_string())
            }
        }
    }
}

/// The advice for a server that is a replica.
pub(super) const fn replica(deployment: &Deployment) -> &'static str {
    match deployment {
        Deployment::Alone => "the server is a replica: point `url` at the new master after a failover",
        Deployment::Watched(_) => "the server is now a replica: Forebay asks the sentinels for the master again",
        Deployment::Cluster(_) => "the server is now a replica: Forebay asks the cluster for the master again",
    }
}

/// The advice for a server's error.
enum Advice {
    /// It may be temporary, or an operator may help.
    Wait(Option<&'static str>),
    /// The operator must fix it.
    Fix(&'static str),
}

fn advice(said: &str, deployment: &Deployment) -> Advice {
    let word = said.split(' ').next().unwrap_or_default();
    match word {
        "LOADING" => Advice::Wait(Some("the server is loading its data: Forebay waits for it")),
        "BUSY" => Advice::Wait(Some("another program's script blocks the server: Forebay retries")),
        "OOM" => Advice::Wait(Some("the server's memory is full: raise `maxmemory`, or trim its data")),
        "MISCONF" => Advice::Wait(Some("the server can't write to its disk: check its log and its disk")),
        "READONLY" => Advice::Wait(Some(replica(deployment))),
        "NOREPLICAS" => Advice::Wait(Some(
            "fewer replicas are connected than `min-replicas-to-write` requires: check \
             them",
        )),
        "NOAUTH" | "WRONGPASS" => Advice::Fix("check that the user of `url` may log in with its password"),
        "NOPERM" => Advice::Fix("grant its user the permissions in docs/guides/stores/redis.md"),
        "WRONGTYPE" => Advice::Fix("the key has another type of value: move it away, or set another `key`"),
        "MOVED" | "ASK" | "CROSSSLOT" => Advice::Fix("the server is a node of a cluster: set cluster = true"),
        "CLUSTERDOWN" => {
            Advice::Wait(Some("too many nodes are down, or no node serves some slots: run redis-cli --cluster check"))
        }
        "ERR" if said.contains("cluster support disabled") => {
            Advice::Fix("the server isn't part of a cluster: remove `cluster`")
        }
        "ERR" if said.contains("AUTH") || said.contains("password") => {
            Advice::Fix("check the password in `url`: it must be the server's, and absent if the server has none")
        }
        "ERR" if said.contains("user executing the script") => {
            Advice::Fix("grant its user the permissions in docs/guides/stores/redis.md")
        }
        "ERR" if said.contains("DB index") => Advice::Fix("set a database in `url` that the server has"),
        _ => Advice::Wait(None),
    }
}
