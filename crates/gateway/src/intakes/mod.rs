//! The intakes of a gateway: requests in the protocols of senders that can't be changed.

mod rule;

pub use rule::{IntakeListener, IntakeRule};
