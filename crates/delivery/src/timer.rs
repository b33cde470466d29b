//! Waits for times that may not come.

use tokio::time::{Instant, sleep_until};

/// Waits until then; forever without a time.
pub(crate) async fn sleep_until_opt(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
