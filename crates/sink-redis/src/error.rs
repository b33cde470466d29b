//! What Redis' errors mean for delivery, in words for the person who must act.

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
    /// The server said so: a word in capitals, and what it is about.
    Server(String),
    /// The connection couldn't be made, or broke.
    Connection(io::Error),
    /// No answer for so long.
    Silent(Duration),
    /// The sink was closed meanwhile.
    Closed,
    /// The server isn't what it must be.
    Unfit(String),
    /// The server isn't ready, which may pass.
    NotReady(String),
    /// A lane's cursor is before what was stored.
    LostTail {
        /// The cursor.
        position: u64,
        /// Up to where it was stored.
        stored: u64,
    },
    /// Another process has claimed the lane.
    Claimed,
    /// It is another store than the batch is for: the one with this mark.
    OtherStore(Mark),
    /// What the server answered makes no sense.
    Odd(&'static str),
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
            Self::Server(said) | Self::Unfit(said) | Self::NotReady(said) => f.write_str(said),
            Self::Connection(error) => error.fmt(f),
            Self::Silent(limit) => write!(f, "no answer for {limit:?}"),
            Self::Closed => f.write_str("the connection was closed here"),
            Self::LostTail { position, stored } => write!(f, "it has positions up to {position}, {stored} was stored"),
            Self::Claimed => f.write_str(CLAIMED_BY_ANOTHER),
            Self::OtherStore(mark) => SinkError::OtherStore(*mark).fmt(f),
            Self::Odd(what) => f.write_str(what),
        }
    }
}

impl Failure {
    /// The same with the place of the server that it happened at, where that isn't the one of the configuration.
    pub(super) fn at(self, address: &Address) -> Self {
        match self {
            Self::Server(said) => Self::Server(said),
            Self::Connection(error) => Self::Connection(io::Error::new(error.kind(), format!("{address}: {error}"))),
            Self::Silent(limit) => Self::NotReady(format!("{address}: no answer for {limit:?}")),
            Self::Unfit(why) => Self::Unfit(format!("{address}: {why}")),
            Self::NotReady(why) => Self::NotReady(format!("{address}: {why}")),
            Self::Odd(_) | Self::Closed | Self::Claimed | Self::OtherStore(_) | Self::LostTail { .. } => self,
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
                Advice::Act(advice) => misconfigured(format!("{said}: {advice}")),
            },
            Self::Connection(error) if is_of_trust(&error) => misconfigured(net::tls::in_configuration(&error)),
            Self::Silent(_) => {
                unavailable(format!("{self}: look at the server and at the network; nothing is lost meanwhile"))
            }
            Self::Unfit(why) => misconfigured(why),
            Self::LostTail { position, stored } => unavailable(format!(
                "it has a lane up to position {position}, and {stored} was stored: it was emptied, lost what wasn't on its \
                 disk, or another server took over; the lane's place is to be asked for again"
            )),
            Self::OtherStore(mark) => SinkError::OtherStore(mark),
            Self::Connection(_) | Self::Closed | Self::NotReady(_) | Self::Claimed | Self::Odd(_) => {
                unavailable(self.to_string())
            }
        }
    }
}

/// What is to be done about a server that is a replica.
pub(super) const fn replica(deployment: &Deployment) -> &'static str {
    match deployment {
        Deployment::Alone => "it is a replica: after a failover `url` must lead to the new master",
        Deployment::Watched(_) => "it is a replica now: the sentinels are asked again for the master",
        Deployment::Cluster(_) => "it is a replica now: the cluster is asked again for the master",
    }
}

/// What to do about what a server said.
enum Advice {
    /// It may pass by itself, or somebody may help.
    Wait(Option<&'static str>),
    /// A person must act.
    Act(&'static str),
}

fn advice(said: &str, deployment: &Deployment) -> Advice {
    let word = said.split(' ').next().unwrap_or_default();
    match word {
        "LOADING" => Advice::Wait(Some("it reads its data, and goes on by itself")),
        "BUSY" => Advice::Wait(Some("a script of somebody holds it up")),
        "OOM" => Advice::Wait(Some("its memory is full: raise `maxmemory`, or trim what it holds")),
        "MISCONF" => Advice::Wait(Some("it can't write to its disk: look at the server's log and at its disk")),
        "READONLY" => Advice::Wait(Some(replica(deployment))),
        "NOREPLICAS" => Advice::Wait(Some("too few replicas follow it for `min-replicas-to-write`")),
        "NOAUTH" | "WRONGPASS" => Advice::Act("see to it that the user of `url` may log in with its password"),
        "NOPERM" => Advice::Act("grant its user what the manual names"),
        "WRONGTYPE" => Advice::Act("something else stands under that key: move it away, or name another in `key`"),
        "MOVED" | "ASK" | "CROSSSLOT" => Advice::Act("it is a node of a cluster: set cluster = true"),
        "CLUSTERDOWN" => Advice::Wait(Some(
            "too many of its nodes are away, or nobody serves some slots: look at redis-cli --cluster check",
        )),
        "ERR" if said.contains("cluster support disabled") => {
            Advice::Act("it is no part of a cluster: leave out `cluster`")
        }
        "ERR" if said.contains("AUTH") || said.contains("password") => Advice::Act(
            "see to it that `url` has the password that the server asks for, and none where it asks for none",
        ),
        "ERR" if said.contains("user executing the script") => Advice::Act("grant its user what the manual names"),
        "ERR" if said.contains("DB index") => Advice::Act("name a database that the server has in `url`"),
        _ => Advice::Wait(None),
    }
}
