//! The configuration of a NATS sink: the servers, the stream, and its subjects.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use nats::{ConnectOptions, Servers};

use super::stream_name::StreamName;
use super::subject::SubjectPattern;

/// The maximum of servers with a copy of a stream.
pub const REPLICAS_MAX: u8 = 5;

/// The servers, the stream, and its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsConfig {
    /// The servers, and the account to use.
    pub servers: Servers,
    /// A file with the key of a user, and its JWT if it has one.
    pub credentials: Option<PathBuf>,
    /// A PEM file with the trusted authorities; without one the machine's.
    pub ca: Option<PathBuf>,
    /// The stream.
    pub stream: StreamName,
    /// The subjects of its messages.
    pub subject: SubjectPattern,
    /// How to create the stream if it is missing; without it, the stream isn't created.
    pub creation: Option<Creation>,
    /// The time limit of a response.
    pub timeout: Duration,
    /// The maximum of connections.
    pub connections_max: NonZeroUsize,
}

impl NatsConfig {
    /// The default of [`NatsConfig::connections_max`].
    pub const CONNECTIONS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);

    /// How to connect to the servers.
    pub(crate) fn connect_options(&self) -> ConnectOptions {
        let Self { servers, credentials, ca, .. } = self.clone();
        ConnectOptions { servers, credentials, ca, name: "forebay" }
    }
}

/// How to create a missing stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Creation {
    /// Servers that have a copy: 1 to [`REPLICAS_MAX`].
    pub replicas: u8,
    /// How long a message is kept; forever without it.
    pub age_max: Option<Duration>,
}
