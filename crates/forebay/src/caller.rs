//! The sender of a request to the admin port.

use std::fmt;

use access::Name;

/// The sender of an admitted request, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// The owner of the token of this name.
    Token(Name),
    /// A client that reaches the loopback address, which needs no token.
    Loopback,
    /// A process of this machine that sent SIGHUP.
    Hangup,
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(name) => write!(f, "token {name}"),
            Self::Loopback => f.write_str("loopback without token"),
            Self::Hangup => f.write_str("SIGHUP"),
        }
    }
}
