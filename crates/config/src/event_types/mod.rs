//! `[types.X]`: schemas, transforms, routes and aggregates.

pub(crate) mod aggregate;
mod aliases;
pub(crate) mod conditional;
pub(crate) mod event_time;
pub(crate) mod event_type;
pub(crate) mod lookup_tables;
pub(crate) mod refused_to;
pub(crate) mod result_schema;
pub(crate) mod routes;
pub(crate) mod schema;
pub mod schema_files;
pub(crate) mod transform;
pub(crate) mod type_rules;
pub(crate) mod unreachable_paths;
