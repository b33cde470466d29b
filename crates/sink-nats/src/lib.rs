//! NATS JetStream: messages of a stream.
//!
//! A transactional store: a run of records is one atomic batch, whose last message is the lane's cursor, with a
//! separate subject and the required sequence of the previous cursor. Each lane has a separate connection, opened by
//! the first call, and at most one batch in flight.

mod api;
mod api_error;
mod config;
mod cursor;
mod error;
mod examine;
mod lane_state;
mod mapping;
mod mark;
mod preflight;
mod publish;
mod settings;
mod store;
mod stream_name;
mod subject;
mod write;

pub use config::{Creation, NatsConfig, REPLICAS_MAX};
pub use settings::KIND;
pub use store::Nats;
pub use stream_name::{InvalidStream, StreamName};
pub use subject::{InvalidSubjectPattern, SubjectPattern};
