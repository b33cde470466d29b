//! The transport: HTTP/1.1 as the ingest port speaks it, one request after the other on each connection.
//! `docs/decisions/006-an-http-layer-of-our-own.md` says why it is our own. It knows no route: it calls a [`handler::Handler`].
//!
//! A request that two readers could understand in two ways is rejected with 400, and the connection is closed (RFC 9112 §11.2).

mod accept;
mod body;
mod chunk_extension;
mod chunks;
mod connection;
pub(crate) mod connection_loop;
pub(crate) mod deadlines;
mod decoded_body;
mod decoder;
mod fields;
mod framing;
pub(crate) mod handler;
mod head;
mod read_buffer;
mod response;
mod socket;
mod stream;
mod syntax;
pub(crate) mod target;
mod transport;

pub(crate) use body::{Body, STRETCH_BYTES};
pub(crate) use connection::{Connection, Connections, Look, Order, PARTS};
pub(crate) use decoder::Coding;
pub(crate) use fields::Fields;
pub(crate) use handler::Handler;
pub(crate) use head::{Head, Method};
pub(crate) use response::{Response, StreamedBody};
pub(crate) use syntax::{is_of_name, is_of_value};
pub(crate) use transport::Transport;
