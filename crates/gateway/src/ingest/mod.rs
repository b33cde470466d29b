//! From a payload to a record of the log.

pub(crate) mod ack_mode;
pub(crate) mod dry_run;
pub(crate) mod headers;
pub(crate) mod ids;
pub(crate) mod offload;
pub(crate) mod params;
pub(crate) mod record_builder;
pub(crate) mod type_finder;
