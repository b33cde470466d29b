//! Why a text names no server.

/// Why a text is no URL of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRedisUrl {
    /// The text doesn't begin as such a URL does, or has more than it may.
    #[error("wanted redis://USER:PASSWORD@HOST:PORT/NUMBER, or rediss:// for TLS")]
    Form,
    /// Nobody to connect to.
    #[error("it names no host: wanted redis://USER:PASSWORD@HOST:PORT/NUMBER")]
    NoHost,
    /// What stands behind the host's colon is no port.
    #[error("its port is no number from 1 to 65535")]
    Port,
    /// What stands behind the slash is no database.
    #[error("what stands behind the host must be the number of a database, as in redis://localhost/0")]
    Database,
    /// A database of a cluster.
    #[error("a cluster has no databases but 0")]
    Databases,
    /// A user or password that can't be read.
    #[error("its user and password must have `%` and two hexadecimal digits for every character that URLs don't take")]
    Escape,
    /// A user without a password.
    #[error("its user has no password: wanted redis://USER:PASSWORD@HOST, or redis://:PASSWORD@HOST without a user")]
    NoPassword,
}
