//! The process's allocator: the C library's, told to keep one heap and to give back what isn't used.
//!
//! One of the project's audited modules with `unsafe`: calls of two functions that no safe crate has. See docs/decisions/009.
#![cfg_attr(
    all(target_os = "linux", target_env = "gnu"),
    allow(unsafe_code, reason = "mallopt and malloc_trim, which touch no memory of ours")
)]

use std::time::{Duration, Instant};

/// How often unused memory is given back, at most.
const GIVE_BACK_EVERY: Duration = Duration::from_secs(1);
/// It holds the heap's lock, and with tens of thousands of connections takes milliseconds: no more than one part in so
/// many of the time, so that few requests ever meet it.
const TIME_SHARE: u32 = 500;
const GIVE_BACK_EVERY_MAX: Duration = Duration::from_secs(30);

/// Has all threads use one heap: of several, each would keep what was free in it. To be called before there are threads.
pub(crate) fn configure() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes two numbers and changes a setting of the allocator; no other thread allocates yet.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Pieces from so many bytes on have a mapping of their own where memory is limited.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const OWN_MAPPING_BYTES: i32 = 64 * 1024;

/// Has larger pieces given back to the system as soon as they are freed, and the heap's end too: between pieces of the heap nothing of
/// them stays. It costs page faults, so it is for a process whose memory is limited.
pub(crate) fn give_back_at_once() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes two numbers and changes a setting of the allocator, under the allocator's own lock.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_MAPPING_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, OWN_MAPPING_BYTES);
    }
}

/// Pieces of up to so many bytes are kept as they are when they are freed, and joined later: glibc's own setting.
const KEPT_PIECES_BYTES: i32 = 128;

/// Has whatever is freed meanwhile joined with what is free beside it at once. Else each larger piece that is asked for begins with
/// joining all small ones: to read thousands of types, which ask for both in turn, that takes a tenth of the time. To be called
/// before there are threads.
pub(crate) fn joining_at_once<T>(work: impl FnOnce() -> T) -> T {
    keep_pieces(0);
    let done = work();
    keep_pieces(KEPT_PIECES_BYTES);
    done
}

fn keep_pieces(bytes: i32) {
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = bytes;
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes two numbers and changes a setting of the allocator; no other thread allocates yet.
    unsafe {
        libc::mallopt(libc::M_MXFAST, bytes);
    }
}

/// Gives unused memory back to the system again and again, until the future is dropped: by itself the C library does so at
/// the heap's end alone.
pub(crate) async fn give_back() {
    loop {
        let begun = Instant::now();
        trim();
        tokio::time::sleep(pause_after(begun.elapsed())).await;
    }
}

fn pause_after(took: Duration) -> Duration {
    (took * TIME_SHARE).clamp(GIVE_BACK_EVERY, GIVE_BACK_EVERY_MAX)
}

fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes a number, and the allocator's own lock; what is allocated stays where it is.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn to_give_back_takes_a_small_part_of_the_time() {
        assert_eq!(pause_after(Duration::from_micros(10)), GIVE_BACK_EVERY);
        assert_eq!(pause_after(Duration::from_millis(6)), Duration::from_secs(3));
        assert_eq!(pause_after(Duration::from_secs(1)), GIVE_BACK_EVERY_MAX);
    }
}
