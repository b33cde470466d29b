//! The intakes of a gateway: requests in the protocols of senders that can't be changed. The crate `intake` has the protocols;
//! `handlers::intake` answers their requests.

mod counters;
mod rule;
mod table;

pub use counters::{IntakeBoard, IntakeCounters};
pub use rule::{IntakeListener, IntakeRule};
pub(crate) use table::{IntakeEntry, IntakeTable};
