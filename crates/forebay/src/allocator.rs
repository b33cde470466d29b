//! The process's allocator: the C library's, told to keep one heap and to give back what isn't used.
//!
//! This is the project's one audited use of `unsafe`: two calls that no safe crate has. See docs/decisions/009.
#![cfg_attr(
    all(target_os = "linux", target_env = "gnu"),
    allow(unsafe_code, reason = "mallopt and malloc_trim, which touch no memory of ours")
)]

use std::time::Duration;

use tokio::time::MissedTickBehavior;

/// How often unused memory is given back.
const GIVE_BACK_EVERY: Duration = Duration::from_secs(1);

/// Has all threads use one heap: of several, each would keep what was free in it. To be called before there are threads.
pub(crate) fn configure() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes two numbers and changes a setting of the allocator; no other thread allocates yet.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Gives unused memory back to the system again and again, until the future is dropped: by itself the C library does so at
/// the heap's end alone.
pub(crate) async fn give_back() {
    let mut ticks = tokio::time::interval(GIVE_BACK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        trim();
    }
}

fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes a number, and the allocator's own lock; what is allocated stays where it is.
    unsafe {
        libc::malloc_trim(0);
    }
}
