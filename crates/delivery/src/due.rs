//! Moments that may come.

use tokio::time::{Instant, sleep_until};

/// Waits until then; for ever without a time.
pub(crate) async fn due(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
