//! What tests of sinks share: the conformance suite that every store must pass, and a store in memory with fault injection.

pub mod conformance;
pub mod memory;

pub use memory::MemoryHandle;
