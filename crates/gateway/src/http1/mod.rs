//! The transport: HTTP/1.1 as the ingest port speaks it, one request after the other on each connection.
//! `docs/decisions/006-an-http-layer-of-our-own.md` says why it is our own. It knows no route: it calls a [`handler::Handler`].
//!
//! A request that two readers could understand in two ways is rejected with 400, and the connection is closed (RFC 9112 §11.2).

mod accept;
pub(crate) mod body;
mod chunk_extension;
mod chunks;
pub(crate) mod connection;
pub(crate) mod connection_loop;
pub(crate) mod deadlines;
mod decoded_body;
pub(crate) mod decoder;
pub(crate) mod fields;
mod framing;
pub(crate) mod handler;
pub(crate) mod head;
mod read_buffer;
pub(crate) mod response;
mod socket;
mod stream;
pub(crate) mod syntax;
pub(crate) mod target;
pub(crate) mod transport;
