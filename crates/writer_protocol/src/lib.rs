//! The protocol between a gateway and a writer: `sink-remote` is its client, `writer` its server. `docs/internals/writer-protocol.md` documents it.

mod claim;
pub mod frame;
pub mod object;
mod outcome;
pub mod read;
mod sink_info;
pub mod version;
pub mod wire;

pub use claim::{ClaimQuery, HeldAnswer};
pub use outcome::{Outcome, RejectionJson, RetryJson};
pub use sink_info::SinkInfo;
