//! Tools for schemas: infers a schema from samples, compares two schemas, finds pointers that no valid payload has, and finds misspelt
//! keywords.
//!
//! The commands and the check of a configuration use this crate. The path of an event doesn't.

mod compat;
mod equivalence;
mod infer;
mod lookup;
mod steps;
#[cfg(test)]
mod tests;
mod typos;
mod unreachable;

pub use compat::{Difference, differences};
pub use infer::Samples;
pub use steps::unreachable_steps;
pub use typos::misspelt_keyword;
pub use unreachable::{Reachability, Unreachable};
