//! Why delivery can't start.

use std::io;

/// Why delivery can't start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The events that wait for a new route can't be counted.
    #[error(
        "can't count the events in the journal: {0}. Check the disk and permissions of the data directory, then start \
         Forebay again"
    )]
    Journal(#[source] io::Error),
    /// Routes have changed, and their start positions can't be saved.
    #[error(
        "routes have changed and the ledger can't be saved: free space on the disk of the data directory, then start \
         Forebay again"
    )]
    Save,
    /// The states of aggregates can't be read or written.
    #[error(
        "can't start an aggregate: {0}. Check the disk and permissions of the data directory, then start Forebay \
         again"
    )]
    Aggregates(#[source] io::Error),
    /// The directory of dead letters can't be read.
    #[error(
        "can't read the directory of dead letters: {0}. Check the disk and permissions of the data directory, then \
         start Forebay again"
    )]
    DeadLetters(#[source] io::Error),
    /// The thread can't be started.
    #[error(
        "can't start the delivery thread: {0}. Raise the limits of threads and memory (ulimit -u), then start Forebay \
         again"
    )]
    Thread(#[source] io::Error),
}
