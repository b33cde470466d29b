//! `/metrics`.

pub(crate) mod collect;
pub(crate) mod text_format;
mod upstreams;
