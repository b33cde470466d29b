//! What NATS' errors mean for delivery, in words for the person who must act.

use std::io;
use std::time::Duration;

use super::api_error::ApiError;
use super::config::NatsConfig;
use net::stream::is_of_trust;
use sink::CLAIMED_BY_ANOTHER;
use sink::{Mark, SinkError};

/// Why a call failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server didn't like something, and said so.
    Server(String),
    /// JetStream said so.
    JetStream(ApiError),
    /// Nobody listens to what was asked.
    NoResponders,
    /// The connection couldn't be made, or broke.
    Connection(io::Error),
    /// No answer for so long.
    Silent(Duration),
    /// The sink was closed meanwhile.
    Closed,
    /// The server, its stream or what is known of a user isn't what it must be.
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
    /// A batch of these positions was acknowledged and isn't stored as a whole.
    Torn {
        /// The first of them.
        first: u64,
        /// The last.
        last: u64,
    },
    /// Another process has claimed the lane.
    Claimed,
    /// It is another stream than the batch is for: the one with this mark.
    OtherStore(Mark),
    /// What the server answered makes no sense.
    Odd(&'static str),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
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
            Advice::Act(advice) => misconfigured(format!("{said}: {advice}")),
        };
        match self {
            Self::Server(said) => advised(&said, of_server(&said)),
            Self::JetStream(error) => advised(&error.description, of_jetstream(error.err_code)),
            Self::NoResponders => unavailable(
                "nobody answers for it: JetStream isn't switched on there or has no leader at the moment, or the stream was removed"
                    .to_owned(),
            ),
            Self::Connection(error) if is_of_trust(&error) => {
                misconfigured(net::tls::in_configuration(&error))
            }
            Self::Connection(error) => unavailable(error.to_string()),
            Self::Silent(limit) => unavailable(format!(
                "no answer for {limit:?}: look at the server and at the network; nothing is lost meanwhile"
            )),
            Self::Closed => unavailable("the connection was closed here".to_owned()),
            Self::Unfit(why) => misconfigured(why),
            Self::NotReady(why) => unavailable(why),
            Self::LostTail { position, stored } => unavailable(format!(
                "it has a lane up to position {position}, and {stored} was stored: it was purged or made anew, lost what wasn't on its \
                 disk, or another server took over; the lane's place is to be asked for again"
            )),
            Self::Torn { first, last } => unavailable(format!(
                "the server acknowledged positions {first} to {last} and stored only some of them: its account has no room left; give \
                 it more, or remove what nobody needs. What is missing is sent again"
            )),
            Self::OtherStore(mark) => SinkError::OtherStore(mark),
            Self::Claimed => unavailable(CLAIMED_BY_ANOTHER.to_owned()),
            Self::Odd(what) => unavailable(what.to_owned()),
        }
    }
}

/// What to do about what a server said.
enum Advice {
    /// It may pass by itself, or somebody may help.
    Wait(Option<&'static str>),
    /// A person must act.
    Act(&'static str),
}

/// What a server says before it closes a connection, or instead of an answer.
fn of_server(said: &str) -> Advice {
    let lower = said.to_lowercase();
    let has = |words: &str| lower.contains(words);
    if has("permissions violation") {
        Advice::Act("grant its user what the manual names")
    } else if has("expired") || has("revoked") {
        Advice::Act("give its user new credentials")
    } else if has("authorization") || has("authentication") {
        Advice::Act("see to it that `url` or `credentials` has what the server asks for")
    } else if has("tls required") {
        Advice::Act("begin `url` with tls://")
    } else if has("maximum payload") {
        Advice::Wait(Some("its `max_payload` was lowered: it is looked at again"))
    } else {
        Advice::Wait(None)
    }
}

/// What JetStream's errors mean, by their numbers.
const fn of_jetstream(code: u32) -> Advice {
    match code {
        // The account has no room, the server has none, or the stream is full.
        10002 | 10023 | 10028 | 10047 | 10077 => Advice::Wait(Some("give it more room, or remove what nobody needs")),
        10039 => Advice::Act("switch JetStream on for the account of its user"),
        10076 => Advice::Act("switch JetStream on in the server"),
        10065 => Advice::Act(
            "another stream listens to some of these subjects: name others in `subject`, or that one in `stream`",
        ),
        10074 | 10005 => Advice::Act("there are fewer servers than `replicas` says"),
        10052 | 10025 => Advice::Act("the server doesn't make such a stream: make it as the manual says"),
        10109 => Advice::Act("it is sealed, and takes nothing any more: name another"),
        10174 => Advice::Act("set allow_atomic true"),
        10210 => Advice::Wait(Some("others have as many batches under way as the server takes")),
        10176 => Advice::Wait(Some(
            "some of its messages didn't get there, as when a cluster has another leader; it is sent again",
        )),
        _ => Advice::Wait(None),
    }
}
