//! When a request that posts events is answered: [`until_durable`] decides when the 200 is sent.

pub(crate) mod batch_summary;
pub(crate) mod response;
pub(crate) mod until_delivered;
pub(crate) mod until_durable;
