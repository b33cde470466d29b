//! The event types that a gateway accepts, with their rules.

pub(crate) mod cost;
mod current_types;
mod refused_to;
mod store_readers;
mod text_rule;
mod type_cache;
mod type_entry;
mod type_names;
mod type_registry;
mod type_resolver;
mod type_rules;
mod type_transform;

pub(crate) use cost::{CostBudget, OverBudget, is_costly_by_size};
pub(crate) use current_types::CurrentTypes;
pub use refused_to::RefusedTo;
pub use store_readers::StoreReaders;
pub use text_rule::TextRule;
pub(crate) use type_cache::{Slot, TypeCache};
pub(crate) use type_entry::TypeEntry;
pub use type_names::TypeNames;
pub(crate) use type_registry::TypeRegistry;
pub use type_resolver::TypeResolver;
pub use type_rules::{GatewayTypes, IdRule, TypeRules};
pub use type_transform::TransformHandle;
