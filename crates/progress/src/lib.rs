//! The progress of lanes and shards: when a cursor passed a position, the last failures of a lane, the names of its last
//! objects, and its last writers. It lets the console say when an event was stored although nothing is written for each event.
//!
//! The files are in the folder `progress` of the data directory. They are small, never synced, and nothing is decided by
//! them: a file that is missing, damaged or foreign is begun again, and a write that fails is left out.
//!
//! [`ProgressBoard`] is the whole interface. Delivery samples cursors about twice a second (`track.rs`); a ring (`ring.rs`)
//! keeps pairs of time and cursor in pages (`page.rs`), and `search.rs` finds a position between two of them. Failures,
//! objects and writers are in files of fixed slots (`records.rs`).

mod board;
mod failure;
mod files;
mod object_record;
mod page;
mod records;
mod ring;
mod search;
#[cfg(test)]
mod tests;
mod track;
mod waiting;
mod writer_record;

pub use board::{LaneReporter, ProgressBoard};
pub use failure::Failure;
pub use object_record::WrittenObject;
pub use page::ProgressSample;
pub use search::Passed;
