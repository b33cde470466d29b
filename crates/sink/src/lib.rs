//! Sinks: drivers of stores. A sink connects, tells a lane's cursor, writes batches and closes. It never
//! retries, never batches and never decides what is dropped: delivery does.

mod batch;
mod contract;

pub use batch::{Batch, Record, Write};
pub use contract::{Cursor, Reason, Refusal, Report, Retry, SinkError, Traits};
