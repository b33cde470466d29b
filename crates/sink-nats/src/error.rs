//! What NATS' errors mean for delivery, with advice for the operator.

use std::io;

use super::api_error::ApiError;
use super::config::NatsConfig;
use nats::{Advice, Error};
use net::stream::is_of_trust;
use sink::CLAIMED_BY_ANOTHER;
use sink::{Mark, SinkError};

/// Why a call failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The connection or the call failed.
    Nats(Error),
    /// JetStream's error.
    JetStream(ApiError),
    /// The sink was closed during the call.
    Closed,
    /// The server, its stream or the credentials don't have the required form.
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
    /// A batch of these positions was acknowledged but not stored completely.
    Torn {
        /// The first of them.
        first: u64,
        /// The last.
        last: u64,
    },
    /// Another process has claimed the lane.
    Claimed,
    /// It is another stream than the batch's: the one with this store id.
    OtherStore(Mark),
    /// The server's response is invalid.
    Unexpected(&'static str),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Nats(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Nats(Error::Connection(error))
    }
}

impl Failure {
    pub(super) fn into_sink_error(self, config: &NatsConfig) -> SinkError {
        let place = format!("NATS {}, stream {}", config.servers, config.stream);
        let unavailable = |why: String| SinkError::Unavailable(format!("{place}: {why}").into());
        let misconfigured = |why: String| SinkError::Misconfigured(format!("{place}: {why}").into());
        let advised = |said: &str, advice| match advice {
            Advice::Wait(Some(advice)) => unavailable(format!("{said}: {advice}")),
            Advice::Wait(None) => unavailable(said.to_owned()),
            Advice::Fix(advice) => misconfigured(format!("{said}: {advice}")),
        };
        match self {
            Self::Nats(Error::Server(said)) => advised(&said, of_server(&said)),
            Self::JetStream(error) => advised(&error.description, of_jetstream(error.err_code)),
            Self::Nats(Error::NoResponders) => unavailable(
                "no server responds: JetStream is disabled or has no leader at the moment, or the stream was deleted. \
                 Forebay retries"
                    .to_owned(),
            ),
            Self::Nats(Error::Connection(error)) if is_of_trust(&error) => {
                misconfigured(net::tls::in_configuration(&error))
            }
            Self::Nats(Error::Connection(error)) => unavailable(error.to_string()),
            Self::Nats(Error::NoResponse(limit)) => unavailable(format!(
                "no response within {limit:?}. Check the server and the network. Forebay retries, and no event is lost"
            )),
            Self::Closed => unavailable("Forebay cancelled the call, because the sink was closed".to_owned()),
            Self::Misfit(why) | Self::Nats(Error::Misfit(why)) => misconfigured(why),
            Self::NotReady(why) => unavailable(why),
            Self::LostTail { position, stored } => unavailable(format!(
                "the lane's cursor is {position}, but {stored} was stored before: the stream was purged or recreated, \
                 lost data that wasn't on disk, or failed over. Forebay reads the cursor again before the next write"
            )),
            Self::Torn { first, last } => unavailable(format!(
                "the server acknowledged positions {first} to {last}, but stored only some of them: its account has no \
                 room left. Give it more, or remove unneeded data. Forebay resends the missing events"
            )),
            Self::OtherStore(mark) => SinkError::OtherStore(mark),
            Self::Claimed => unavailable(CLAIMED_BY_ANOTHER.to_owned()),
            Self::Unexpected(what) | Self::Nats(Error::Unexpected(what)) => unavailable(what.to_owned()),
        }
    }
}

/// An error that a server sends before it closes a connection, or instead of a response.
fn of_server(said: &str) -> Advice {
    if said.to_lowercase().contains("permissions violation") {
        Advice::Fix("grant its user the permissions in docs/guides/stores/nats.md")
    } else {
        Advice::of(said)
    }
}

/// The advice for JetStream's errors, by their numbers.
const fn of_jetstream(code: u32) -> Advice {
    match code {
        // The account has no room, the server has none, or the stream is full.
        10002 | 10023 | 10028 | 10047 | 10077 => Advice::Wait(Some("give it more room, or remove unneeded data")),
        10039 => Advice::Fix("enable JetStream for the account of its user"),
        10076 => Advice::Fix("enable JetStream in the server"),
        10065 => Advice::Fix(
            "another stream listens to some of these subjects: set another `subject`, or that stream in `stream`",
        ),
        10074 | 10005 => Advice::Fix("there are fewer servers than `replicas` requires: lower it, or add servers"),
        10052 | 10025 => {
            Advice::Fix("the server can't create such a stream: create it as docs/guides/stores/nats.md describes")
        }
        10109 => Advice::Fix("the stream is sealed, and rejects messages: set another `stream`"),
        10174 => Advice::Fix("set allow_atomic true"),
        10210 => Advice::Wait(Some(
            "the server's limit of concurrent batches is reached by other clients: Forebay \
             retries",
        )),
        10176 => Advice::Wait(Some(
            "some messages of the batch were lost, as after a change of the leader. Forebay resends it",
        )),
        _ => Advice::Wait(None),
    }
}
