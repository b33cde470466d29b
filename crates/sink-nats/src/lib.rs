//! NATS JetStream: messages of a stream.
//!
//! Fenced: a run of records is one atomic batch, whose last message is the lane's cursor, on a subject of its own and with the
//! sequence that the cursor before it must have. Each lane has a connection of its own, which begins with the first call, and one
//! batch in flight at most.

mod api;
mod api_error;
mod config;
mod credentials;
mod cursor;
mod error;
mod lane_state;
mod mapping;
mod mark;
mod preflight;
mod protocol;
mod publish;
mod server;
mod session;
mod settings;
mod store;
mod stream_name;
mod subject;
mod write;

pub use config::{Creation, NatsConfig, REPLICAS_MAX};
pub use server::{InvalidServers, Servers};
pub use settings::KIND;
pub use store::Nats;
pub use stream_name::{InvalidStream, StreamName};
pub use subject::{InvalidSubject, SubjectPattern};
