//! What tests of sinks share: the conformance suite that every store must pass, tests with faults of connections and servers, and a store in
//! memory with fault injection.

pub mod conformance;
pub mod events;
pub mod faults;
pub mod memory;

pub use memory::MemoryHandle;
