//! What is known of a NATS sink before it connects: where the servers are, which stream, and under which subjects.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use super::server::Servers;
use super::stream_name::StreamName;
use super::subject::SubjectPattern;

/// Servers that have a copy of a stream at most.
pub const REPLICAS_MAX: u8 = 5;

/// Which stream of which servers, and what its messages are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsConfig {
    /// Where the servers are and who asks.
    pub servers: Servers,
    /// A file with the key of a user, and its JWT where it has one.
    pub credentials: Option<PathBuf>,
    /// A PEM file with the authorities that are trusted; without one those that the machine trusts.
    pub ca: Option<PathBuf>,
    /// The stream.
    pub stream: StreamName,
    /// The subjects of its messages.
    pub subject: SubjectPattern,
    /// How the stream is made where it is missing; without it, it isn't.
    pub creation: Option<Creation>,
    /// How long a server may take for an answer.
    pub timeout: Duration,
    /// So many connections at most.
    pub connections_max: NonZeroUsize,
}

impl NatsConfig {
    /// [`NatsConfig::connections_max`], if nothing else is wanted.
    pub const CONNECTIONS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);
}

/// How a missing stream is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Creation {
    /// Servers that have a copy: 1 to [`REPLICAS_MAX`].
    pub replicas: u8,
    /// How long a message is kept; for ever without it.
    pub age_max: Option<Duration>,
}
