//! A timer that may be unset.

use tokio::time::{Instant, sleep_until};

/// Sleeps until `deadline`; forever without one.
pub(crate) async fn sleep_until_opt(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
