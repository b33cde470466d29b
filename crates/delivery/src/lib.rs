//! Delivery: brings events from the event log to the sinks, beside the log. Batching, retry, dead letters, cursors
//! and the ledger exist once, here; a sink only writes.
//!
//! A *lane* (`lane.rs`) reads one shard for one sink, and writes one batch at a time. What it achieves it tells the
//! [`Ledger`]; the *keeper* saves the ledger with all cursors in one file, and frees segments behind it. Aggregates read the same way,
//! and journal what they make of the events (`aggregates/`).

mod aggregates;
mod alone;
mod assembly;
mod backlog;
mod backoff;
mod book;
mod bound_store;
mod change;
mod claims;
mod condition;
mod dead_letters;
mod delivery;
mod document;
mod engine;
mod join;
mod keeper;
mod lane;
mod lanes;
mod ledger;
mod objects;
mod options;
mod pace;
mod pair;
mod place;
mod race;
mod retries;
mod routes;
mod rules;
mod saved;
mod settling;
mod status;
mod testimony;
#[cfg(test)]
mod tests;
mod way;

pub use aggregates::{
    AggregateBoard, AggregateFigures, AggregateSetup, AggregateStatus, UnusableState, unusable_states,
};
pub use change::{ChangeError, DeliveryControl, GivenUp};
pub use condition::Condition;
pub use dead_letters::{
    DeadAction, DeadError, DeadFilter, DeadLetter, DeadLetterOffice, DeadList, DeadOutcome, LastDead,
    damaged_dead_letters, each_dead_letter, read_dead_letters,
};
pub use delivery::{Delivery, StartError};
pub use ledger::{Ledger, Row, SinkRow};
pub use options::{Begin, Clock, Options, Reporter, Setup, SinkSetup};
pub use routes::{Routes, SinkName};
pub use saved::{GiveUpError, LoadError, Saved};
pub use status::{DeadCounters, KeeperCounters, LaneBoard, LaneState, LaneStatus};
