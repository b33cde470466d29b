//! Ingest: from a request that posts events to records that the log can append.
//!
//! All payloads go through one pipeline: see [`pipeline`].

mod ack_mode;
mod dry_run;
mod dry_run_types;
mod envelope;
mod ids;
pub(crate) mod offload;
mod params;
mod pipeline;
mod record_builder;
mod rejected_record;
mod request_budget;
mod trace;
mod windows;

pub(crate) use ack_mode::AckMode;
pub use dry_run::{DryRun, RequestContext};
pub use dry_run_types::DryRunTypes;
pub(crate) use envelope::{Envelope, Headers};
pub(crate) use ids::{ChosenBy, ChosenId, RequestKey, check_key};
pub(crate) use offload::offload;
pub use params::DEFAULT_TYPE;
pub(crate) use params::IngestParams;
pub(crate) use pipeline::{Event, Input, Made, Pipeline, PipelineError, Processed, Unobserved, Workspace};
pub(crate) use record_builder::{Offloaded, RecordBuilder};
pub(crate) use rejected_record::RejectedRecord;
pub(crate) use request_budget::RequestBudget;
pub use trace::{AcceptedEvent, DryRunOutcome, DryRunRejection, DryRunTrace};
pub(crate) use windows::{Epoch, WindowSet};

#[cfg(test)]
mod tests;
