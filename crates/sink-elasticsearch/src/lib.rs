//! Elasticsearch and OpenSearch: documents of indices and data streams.
//!
//! An idempotent store: an event's id is its document's `_id`, which is created and never overwritten. The index
//! follows from the event alone, so a duplicate finds its first copy. A result of an aggregate has its revision as the
//! document's version.

mod batch_outcomes;
mod bulk;
mod config;
mod conflict;
mod data_stream;
mod durability;
mod error;
mod examine;
mod fault;
mod fields;
mod index;
mod limiter;
mod lookup;
mod mapping;
mod mark;
mod nodes;
mod outcome;
mod page;
mod reader;
mod rollover;
mod search;
mod server;
mod settings;
mod store;
mod store_error;
#[cfg(test)]
mod tests;
mod write;

pub use config::{
    ApiKey, DocumentConflictPolicy, DocumentShape, ElasticsearchConfig, IndexTarget, InvalidNodes, InvalidTemplate,
    NodeList, Template,
};
pub use index::{IndexPattern, InvalidIndex};
pub use settings::KIND;
pub use store::Elasticsearch;
