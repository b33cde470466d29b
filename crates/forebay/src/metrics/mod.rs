//! `/metrics`.

pub(crate) mod collect;
mod refusals;
pub(crate) mod retention;
pub(crate) mod text_format;
mod upstreams;
