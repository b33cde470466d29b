//! Why a text isn't the URL of a server.

/// Why a text isn't the URL of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRedisUrl {
    /// The text doesn't begin with the scheme, or has a part that isn't allowed.
    #[error("expected redis://USER:PASSWORD@HOST:PORT/NUMBER, or rediss:// for TLS")]
    Form,
    /// No host to connect to.
    #[error("it names no host: expected redis://USER:PASSWORD@HOST:PORT/NUMBER")]
    NoHost,
    /// The text after the host's colon isn't a port.
    #[error("its port isn't a number from 1 to 65535")]
    Port,
    /// The text after the slash isn't a database.
    #[error("its path must be a database number, as in redis://localhost/0")]
    Database,
    /// A database of a cluster.
    #[error("a cluster has only database 0")]
    Databases,
    /// A user or password with an invalid escape.
    #[error("in its user and password, write `%` and two hexadecimal digits for each character that URLs don't allow")]
    Escape,
    /// A user without a password.
    #[error("its user has no password: expected redis://USER:PASSWORD@HOST, or redis://:PASSWORD@HOST without a user")]
    NoPassword,
}
