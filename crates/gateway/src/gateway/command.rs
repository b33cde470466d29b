//! The commands that other threads of a gateway send to a shard.

use std::net::{IpAddr, TcpStream as StdStream};
use std::sync::Arc;
use std::sync::mpsc::Sender as EndOfWait;

use crate::shard::rules::Rules;
use http1::TickPart;
use net::connections::ConnectionPermit;

/// A command to a shard's thread.
pub(crate) enum ShardCommand {
    /// Serve a connection.
    Open(AcceptedSocket),
    /// A second, or a part of it, has passed: check the deadlines of these connections.
    Tick(TickPart),
    /// Apply these rules. To drop the sender notifies the thread that waits for that.
    Rules(Arc<Rules>, EndOfWait<()>),
    /// Let requests finish, close connections, and end.
    Finish,
    /// End though requests are in flight.
    Abort,
}

/// An accepted connection that the listener hands to a shard.
pub(crate) struct AcceptedSocket {
    pub(crate) stream: StdStream,
    pub(crate) client: IpAddr,
    pub(crate) permit: ConnectionPermit,
}
