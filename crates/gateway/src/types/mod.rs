//! The event types that a gateway accepts, with their rules.

pub(crate) mod cost;
pub(crate) mod text_rule;
pub(crate) mod type_cache;
pub(crate) mod type_entry;
pub(crate) mod type_registry;
pub(crate) mod type_resolver;
pub(crate) mod type_rules;
pub(crate) mod type_transform;
