//! The handlers of the routes. No file here uses a socket.

mod batch;
mod batch_stream;
mod bridge;
mod client_ip;
mod event;
mod event_ack;
mod intake;
mod quarantine;
pub(crate) mod quarantine_task;
mod read;
mod rejection;
pub(crate) mod router;
mod transformed_event;

pub use read::{ReadBody, ReadMemory, ReadRefused, StoreAnswer, StoredEvents, event_json, look_up};
