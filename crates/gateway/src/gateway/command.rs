//! The commands that other threads of a gateway send to a shard.

use std::net::TcpStream as StdStream;
use std::sync::Arc;
use std::sync::mpsc::Sender as EndOfWait;

use crate::shard::rules::Rules;
use http1::{ConnectionPeer, TickPart};
use net::connections::ConnectionPermit;
use tokio::sync::oneshot;

/// A command to a shard's thread.
pub(crate) enum ShardCommand {
    /// Serve a connection.
    Open(AcceptedSocket),
    /// A second, or a part of it, has passed: check the deadlines of these connections.
    Tick(TickPart),
    /// Apply these rules. To drop the sender notifies the thread that waits for that.
    Rules(Arc<Rules>, EndOfWait<()>),
    /// Report the requests that have been open for longer than this number of ticks.
    Report(u32, oneshot::Sender<LongRequests>),
    /// Let requests finish, close connections, and end.
    Finish,
    /// End though requests are in flight.
    Abort,
}

/// The requests of a shard that have been open for long: how many, and the longest time of one in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LongRequests {
    /// Their clients have sent a part of them.
    pub arriving: usize,
    /// They have arrived, and have no response yet.
    pub processing: usize,
    /// Their clients have read a part of the response.
    pub answering: usize,
    /// The longest time of one in its state, in seconds.
    pub longest_seconds: u32,
}

/// An accepted connection that the listener hands to a shard.
pub(crate) struct AcceptedSocket {
    pub(crate) stream: StdStream,
    pub(crate) peer: ConnectionPeer,
    pub(crate) permit: ConnectionPermit,
}
