//! The transport: HTTP/1.1 as the ingest port speaks it, one request after the other on each connection.
//! `docs/internals/decisions/006-own-http-layer.md` says why it is our own. It knows no route: it calls a [`Handler`].
//!
//! A request that two readers could understand in two ways is rejected with 400, and the connection is closed (RFC 9112 §11.2).

mod accept;
mod body;
mod body_budget;
mod chunk_extension;
mod chunks;
mod connection;
mod connection_loop;
mod deadlines;
mod decoded_body;
mod decoder;
mod error;
mod fields;
mod framing;
mod handler;
mod head;
mod read_buffer;
mod response;
mod socket;
mod stream;
mod syntax;
mod target;
mod transport;

pub use body::{Body, STRETCH_BYTES};
pub use body_budget::BodyBudget;
pub use connection::{
    ConnectionPeer, ConnectionState, KeptWaiting, OpenConnections, OpenRequest, Order, TICK_PARTS, TickPart,
};
pub use connection_loop::serve;
pub use deadlines::order;
pub use decoder::Coding;
pub use error::{RequestError, RequestErrorKind};
pub use fields::Fields;
pub use handler::Handler;
pub use head::{Head, Method};
pub use response::{Response, StreamedBody};
pub use syntax::{is_of_name, is_of_value};
pub use target::Target;
pub use transport::Transport;
