//! When a request that posts events is answered: [`commit_wait`] decides when the 200 is sent.

pub(crate) mod batch_summary;
pub(crate) mod commit_wait;
pub(crate) mod response;
pub(crate) mod until_delivered;
