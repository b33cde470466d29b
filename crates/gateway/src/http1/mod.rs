//! HTTP/1.1 as the intake port speaks it: requests in, answers out, one after the other on each connection
//! (`docs/decisions/006-an-http-layer-of-our-own.md` says why it is our own). It knows requests and
//! answers; what they are about is `intake`'s.
//!
//! What two readers could understand in two ways is refused with 400, and the connection is closed (RFC 9112 §11.2).

pub(crate) mod body;
mod chunk_extension;
mod chunks;
pub(crate) mod connection;
pub(crate) mod deadlines;
pub(crate) mod fields;
mod framing;
pub(crate) mod head;

mod accept;
pub(crate) mod connection_loop;
pub(crate) mod decoded_body;
pub(crate) mod decoder;
mod read_buffer;
pub(crate) mod response;
mod socket;
mod stream;
pub(crate) mod target;

pub(crate) use chunks::{is_of_name, is_of_value};
