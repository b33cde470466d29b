//! Rejected events: counted by type and source, sampled for the log, and stored as events of another type if their type's configuration
//! says so. None of this delays or changes the response to the request.

mod counts;
mod document;
mod label;
mod refused_event;
mod samples;
mod tally;

pub(crate) use counts::RefusalCounts;
pub use counts::{QuarantineCounts, RefusalCount};
pub(crate) use label::TypeLabel;
pub(crate) use refused_event::{Capture, RefusedEvent, Rejected};
pub use samples::{RefusalNews, RefusalSample};
pub(crate) use samples::{RefusalSamples, Sender};
pub(crate) use tally::RefusalTally;
