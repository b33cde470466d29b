//! The contract of sinks. A store's crate implements [`Store`]; delivery, the writer and the readers call it through a [`Sink`].
//!
//! A sink connects, returns a lane's cursor, writes batches, reads stored events back if it can, and closes. Delivery retries, batches and
//! decides what is dropped. The modules below the contract are what several stores share.

mod batch;
mod claim;
pub mod close_signal;
pub mod connection_pool;
pub mod envelope;
mod examination;
mod fault;
pub mod folder;
mod kind;
pub mod lane_states;
pub mod local_path;
mod mark;
mod null;
mod outcome;
pub mod read_pool;
mod retention;
mod risk;
mod sink;
mod store;
mod table_name;
mod tapped;

pub use batch::{Batch, Record, Write};
pub use claim::{CLAIMED_BY_ANOTHER, Claim, Held, InvalidClaim, Takeover};
pub use examination::{Examination, Remedy};
pub use fault::{Fault, Verdict, judge_unclear};
pub use kind::{Destination, Folders, JsonLimits, Layout, LayoutPart, NONE, SameAs, SinkKind, StoreConfig};
pub use mark::{InvalidMark, Mark};
pub use null::{NULL, Null};
pub use outcome::{
    Capabilities, Cursor, Reason, RejectedRecord, Retry, RetryScope, SinkError, WriteOutcome, make_visible,
};
pub use retention::Retention;
pub use risk::{ALLOW_UNSAFE, AllowedRisks, Risk};
pub use sink::Sink;
pub use store::{Store, StoreBinding};
pub use table_name::{InvalidTableName, TableName, TableNameRule, quoted};
pub use tapped::offer_stored;
