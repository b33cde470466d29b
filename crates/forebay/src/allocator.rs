//! The process's allocator: jemalloc, told to give memory back soon after a burst.
//!
//! This is the project's one audited use of `unsafe`: naming a static, which jemalloc reads before `main`.
#![allow(unsafe_code, reason = "a static with the name that jemalloc reads its options from")]

use std::ffi::CStr;

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// One arena, since there are few threads and each keeps small pieces of its own; of pieces beyond 8 KiB it keeps none;
/// and pages that were freed go back within a second.
const OPTIONS: &CStr = c"narenas:1,tcache_max:8192,dirty_decay_ms:1000,muzzy_decay_ms:0,abort_conf:true";

/// A pointer to the options, as jemalloc wants it.
#[repr(transparent)]
struct Options(*const std::ffi::c_char);

// SAFETY: it points to a string that is never written to.
unsafe impl Sync for Options {}

// SAFETY: jemalloc declares `const char *_rjem_malloc_conf` for this, and nothing else has that name.
#[unsafe(export_name = "_rjem_malloc_conf")]
static MALLOC_CONF: Options = Options(OPTIONS.as_ptr());
