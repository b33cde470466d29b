//! The process's allocator: mimalloc, which gives memory back soon after a burst.

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;
