//! A limit on the size of files (RLIMIT_FSIZE): the write fails with an error that has a name, as on a full disk, and doesn't end the
//! process.

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// Keeps SIGXFSZ from ending the process. If the handler can't be set, the limit ends the process as before.
pub(crate) fn outlive_limit() {
    let Ok(runtime) = Builder::new_current_thread().enable_io().build() else { return };
    let _context = runtime.enter();
    // The handler stays when the stream of signals is dropped.
    let _ = signal(SignalKind::from_raw(libc::SIGXFSZ));
}
