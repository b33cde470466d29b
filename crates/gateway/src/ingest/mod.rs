//! Ingest: from a request that posts events to records that the log can append.
//!
//! All payloads go through one sequence of steps: see [`sequence`].

pub(crate) mod ack_mode;
pub(crate) mod dry_run;
pub(crate) mod envelope;
pub(crate) mod ids;
pub(crate) mod offload;
pub(crate) mod params;
pub(crate) mod record_builder;
pub(crate) mod rejected_record;
pub(crate) mod room;
pub(crate) mod sequence;
mod trace;
pub(crate) mod type_finder;
pub(crate) mod windows;

#[cfg(test)]
mod tests;
