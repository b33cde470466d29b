//! The type that an event would have: by path, header, pointer or rules, or as an unknown one.

use std::sync::Arc;

use event::TypeName;

use super::dry_run::RequestContext;
use super::params::DEFAULT_TYPE;
use super::pipeline::{self, Input, PipelineError};
use super::trace::DryRunRejection;
use crate::event_types::{CostBudget, GatewayTypes, TypeCache, TypeRegistry};
use crate::problem::Refused;

/// The header that names the type of a request's events, in lower case.
const TYPE_HEADER: &str = "forebay-type";

/// Finds types as a gateway with this configuration does, and opens none.
#[derive(Clone, Debug, Default)]
pub struct DryRunTypes(GatewayTypes);

impl DryRunTypes {
    /// By these types.
    #[must_use]
    pub const fn new(types: GatewayTypes) -> Self {
        Self(types)
    }

    /// The type as which events with this name as their type are accepted.
    ///
    /// # Errors
    /// What the client would be answered.
    pub fn named(&self, name: &str) -> Result<TypeName, DryRunRejection> {
        self.registry().find(name).map(|entry| entry.name).map_err(|problem| DryRunRejection::new(problem.into()))
    }

    /// The type of an event with this payload whose path names none.
    ///
    /// # Errors
    /// What the client would be answered.
    pub fn of_payload(&self, bytes: &[u8], context: &RequestContext) -> Result<TypeName, DryRunRejection> {
        match context.header(TYPE_HEADER) {
            Some(name) => self.named(name),
            None => self.resolve(bytes).map_err(DryRunRejection::new),
        }
    }

    fn resolve(&self, bytes: &[u8]) -> Result<TypeName, Refused> {
        let mut types = TypeCache::new(Arc::new(self.registry()));
        if !types.table().reads_payloads() {
            let slot = types.find(DEFAULT_TYPE)?;
            return Ok(types.get(slot).name.clone());
        }
        let (may_repair, mut repaired) = (types.table().repairs, String::new());
        let (payload, _) = pipeline::check_json(Input::Bytes(bytes), may_repair, &mut repaired)?;
        let slot = pipeline::type_of(&mut types, payload, &mut CostBudget::unlimited())
            .map_err(PipelineError::into_problem)?;
        Ok(types.get(slot).name.clone())
    }

    /// Types that are accepted under `*` are counted from the beginning.
    fn registry(&self) -> TypeRegistry {
        TypeRegistry::new(self.0.clone(), &Arc::default())
    }
}
