//! Why a request has no response.

/// Why a request has no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// No client listens to its subject.
    #[error("no client listens to the request's subject")]
    NoResponders,
    /// There is no connection, or the server is slow. Nothing was sent.
    #[error("{0}")]
    Unavailable(&'static str),
    /// The message has more bytes than the server accepts. Nothing was sent.
    #[error("the message with its headers is above the bus' maximum of {max} bytes")]
    TooLarge {
        /// The server's maximum.
        max: usize,
    },
    /// No response in time.
    #[error("no response in time")]
    TimedOut,
    /// The response came, and there was no room for it.
    #[error("the response has {bytes} bytes, for which there is no room")]
    NoRoom {
        /// Those of its frame.
        bytes: usize,
    },
    /// The connection was lost after the request was sent: it may have been carried out.
    #[error("the connection to the bus was lost: the request may have been carried out")]
    Lost,
    /// The server doesn't permit to publish to its subject.
    #[error("the bus rejected the request: {0}")]
    Forbidden(String),
}
