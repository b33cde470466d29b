//! What each route does with a request.

pub(crate) mod batch;
mod batch_stream;
pub(crate) mod client_ip;
pub(crate) mod event;
mod event_ack;
pub(crate) mod read;
pub(crate) mod router;
pub(crate) mod transform_outcome;
