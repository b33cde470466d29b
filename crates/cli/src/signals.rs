//! Signals that end a process, or have it read its configuration again.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGHUP.
///
/// # Errors
/// The system accepts no handler.
pub fn hangup() -> io::Result<Signal> {
    signal(SignalKind::hangup())
}

/// SIGTERM and SIGINT.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Waits for them on the runtime that is entered.
    ///
    /// # Errors
    /// The system accepts no handler.
    pub fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The next of both.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
