//! The protocols in which senders that can't be changed send events. An intake is a module that maps requests to records, and the
//! verdicts on these to a response.
//!
//! The gateway does everything else, in one way for all of them: admission, tokens, the body and its coding, the pipeline, the append, and
//! the moment of the response. This crate does no I/O and reads no clock.
//!
//! | file | content |
//! |---|---|
//! | `kinds.rs` | the list of the protocols; each has a folder |
//! | `kind.rs` | what a protocol declares: its name, path and settings |
//! | `call.rs` | [`Intake`] and [`IntakeCall`]: what a protocol implements |
//! | `record.rs`, `verdicts.rs` | what goes to the pipeline, and what comes back |
//!
//! A success means that every accepted record is on disk. Two rules hold for every protocol; decision 043 explains both. First, a request
//! that meets temporary trouble is rejected as a whole with 503, because only 503 is retried by every sender that retries. Second, records
//! without an id get one from the SHA-256 of the body, so a repeated request is stored once.

mod budget;
mod call;
pub mod cloudevents;
pub mod elasticsearch;
mod head;
mod kind;
pub mod kinds;
pub mod loki;
mod lossy;
pub mod otlp_http;
mod problem;
pub mod protobuf;
mod record;
mod reply;
pub mod segment;
pub mod splunk_hec;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod type_name;
mod verdicts;
pub mod webhook;

pub use call::{Intake, IntakeCall, IntakeRoute};
pub use head::{IntakeHead, form_decoded};
pub use kind::{IntakeKind, IntakePath};
pub use problem::{Problem, ProblemKind, Stop};
pub use record::{IntakeRecord, RecordPayload, Records};
pub use reply::{JSON, Reply, TEXT};
pub use type_name::type_name;
pub use verdicts::{Detail, RecordVerdict, Verdicts};
