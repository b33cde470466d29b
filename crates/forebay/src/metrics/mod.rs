//! `/metrics`.

pub(crate) mod bus_events;
pub(crate) mod collect;
mod events;
pub(crate) mod exposition;
pub(crate) mod findings;
pub(crate) mod host;
pub(crate) mod push;
mod refusals;
pub(crate) mod retention;
pub(crate) mod text_format;
mod times;
mod upstreams;
