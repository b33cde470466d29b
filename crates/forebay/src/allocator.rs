//! Sets the process's allocator, that of the C library, to use one heap and to return unused memory. It shows the program's allocations to the
//! profile of the heap.
//!
//! One of the project's audited modules with `unsafe`: calls of functions that no safe crate has. See docs/internals/decisions/009.
#![allow(
    unsafe_code,
    reason = "audited: settings and figures of the C library's allocator, and an allocator that only counts"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::time::{Duration, Instant};

/// The allocator of Rust code. C libraries call that of the C library themselves.
#[global_allocator]
static ALLOCATOR: SampledAllocator = SampledAllocator;

/// The C library's allocator, whose allocations a profile can sample.
struct SampledAllocator;

// SAFETY: each call is passed on unchanged to the system's allocator, whose results are returned unchanged. What is called before it neither
// allocates nor panics.
unsafe impl GlobalAlloc for SampledAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        profile::allocated(layout.size());
        // SAFETY: the caller's promises are those of the same method.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        profile::allocated(layout.size());
        // SAFETY: the caller's promises are those of the same method.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        profile::allocated(bytes.saturating_sub(layout.size()));
        // SAFETY: the caller's promises are those of the same method.
        unsafe { System.realloc(pointer, layout, bytes) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are those of the same method.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Bytes of the C library's heap, in which Rust code and C libraries allocate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeapFigures {
    /// In use, large allocations with separate mappings included.
    pub(crate) used_bytes: usize,
    /// Free, and not returned to the system: the kernel may still hold memory for them.
    pub(crate) free_bytes: usize,
}

/// The heap now. `None` with a C library that doesn't say it.
pub(crate) fn heap_figures() -> Option<HeapFigures> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: it takes the allocator's own lock, and returns numbers.
        let figures = unsafe { libc::mallinfo2() };
        Some(HeapFigures { used_bytes: figures.uordblks + figures.hblkhd, free_bytes: figures.fordblks })
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}

/// The shortest time between two returns of unused memory.
const GIVE_BACK_EVERY: Duration = Duration::from_secs(1);
/// It holds the heap's lock, and takes milliseconds with tens of thousands of connections. So it gets at most this share of the time, and few
/// requests ever wait for it.
const TIME_SHARE: u32 = 500;
const GIVE_BACK_EVERY_MAX: Duration = Duration::from_secs(30);

/// Makes all threads use one heap: of several, each would keep its free memory. Call it before there are threads.
pub(crate) fn configure() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes two numbers and changes a setting of the allocator; no other thread allocates yet.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Allocations of this size and more get a separate mapping if memory is limited.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const OWN_MAPPING_BYTES: i32 = 64 * 1024;

/// Returns larger allocations to the system as soon as they are freed, and the heap's end too: they leave no gaps in the heap.
/// It costs page faults, so it is for a process whose memory is limited.
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

/// Merges freed memory with free neighbours immediately during `work`. Otherwise each larger allocation begins with merging all small ones: reading
/// thousands of types, which alternates both, then takes ten times as long. Call it before there are threads.
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

/// Returns unused memory to the system repeatedly, until the future is dropped: without it the C library does so only at the
/// heap's end.
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
    // SAFETY: it takes a number, and the allocator's own lock; allocations stay where they are.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heap_grows_with_an_allocation() {
        let used = || heap_figures().unwrap().used_bytes;
        let before = used();
        let large = std::hint::black_box(vec![1_u8; 64 << 20]);
        assert!(used() >= before + (32 << 20), "{before}");
        drop(large);
    }

    #[test]
    fn returning_memory_takes_little_time() {
        assert_eq!(pause_after(Duration::from_micros(10)), GIVE_BACK_EVERY);
        assert_eq!(pause_after(Duration::from_millis(6)), Duration::from_secs(3));
        assert_eq!(pause_after(Duration::from_secs(1)), GIVE_BACK_EVERY_MAX);
    }
}
