//! What the transport calls: the one interface between it and the requests' meaning.

use std::rc::Rc;

use http::StatusCode;

use crate::body::Body;
use crate::body_budget::BodyBudget;
use crate::connection::ConnectionPeer;
use crate::error::RequestError;
use crate::head::Head;
use crate::response::Response;
use crate::transport::Transport;

/// Handles the requests of all connections of a shard.
pub trait Handler {
    /// All that is kept of a request while its body arrives. Each open connection has room for one.
    type Request;

    /// What counts the bytes of a body.
    type Budget<'a>: BodyBudget
    where
        Self: 'a;

    /// What the connections share.
    fn transport(&self) -> &Rc<Transport>;

    /// Reads the head of a request that arrived from `peer`.
    fn begin(&self, peer: ConnectionPeer, head: &Head<'_>) -> Self::Request;

    /// Reads the body and makes the response. If the connection is aborted, this is dropped at any await.
    fn respond<'a>(
        &'a self,
        request: &Self::Request,
        body: &mut Body<'a, Self::Budget<'a>>,
    ) -> impl Future<Output = Response>;

    /// The response to a request is known and its body was read.
    fn responded(&self, request: &Self::Request, status: StatusCode, body_bytes: usize);

    /// The response to a request that can't be parsed, or must not arrive this way.
    fn reject(&self, error: Box<RequestError>) -> Response;

    /// A handshake of TLS has ended.
    fn count_handshake(&self, is_secure: bool);

    /// Whether connections are to be closed after the current request.
    fn is_stopping(&self) -> bool;

    /// A task of a connection runs.
    fn before_poll(&self);

    /// A request waits that a client has sent ahead, before the response to the last one.
    fn before_pipelined(&self);
}
