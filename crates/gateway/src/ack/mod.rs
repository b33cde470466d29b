//! When a request that posts events is answered.

pub(crate) mod delivered;
pub(crate) mod response;
