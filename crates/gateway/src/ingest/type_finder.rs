//! Of which type an event would be, for people who try out a configuration: path, header, pointer, rules, the type of unknown ones.

use std::sync::Arc;

use event::TypeName;

use crate::handlers::event::checked;
use crate::ingest::dry_run::{DryRunRejection, RequestContext};
use crate::ingest::offload::type_told_by;
use crate::ingest::params::DEFAULT_TYPE;
use crate::problem::Refused;
use crate::types::type_cache::TypeCache;
use crate::types::type_registry::{GatewayTypes, TypeRegistry};

/// The header that names the type of a request's events, in small letters.
const TYPE_HEADER: &str = "forebay-type";

/// Finds types as a gateway with this configuration does. What it finds it forgets.
#[derive(Clone, Debug, Default)]
pub struct TypeFinder(GatewayTypes);

impl TypeFinder {
    /// By these types.
    #[must_use]
    pub const fn new(types: GatewayTypes) -> Self {
        Self(types)
    }

    /// The type as which events are taken that have this name as their type.
    ///
    /// # Errors
    /// What their sender would be answered.
    pub fn named(&self, name: &str) -> Result<TypeName, DryRunRejection> {
        self.table().find(name).map(|known| known.name).map_err(|problem| DryRunRejection::new(problem.into()))
    }

    /// The type of an event with this payload whose path names none.
    ///
    /// # Errors
    /// What its sender would be answered.
    pub fn of_payload(&self, bytes: &[u8], around: &RequestContext) -> Result<TypeName, DryRunRejection> {
        match around.header(TYPE_HEADER) {
            Some(name) => self.named(name),
            None => self.told_by(bytes).map_err(DryRunRejection::new),
        }
    }

    fn told_by(&self, bytes: &[u8]) -> Result<TypeName, Refused> {
        let mut types = TypeCache::new(Arc::new(self.table()));
        if !types.table().reads_payloads() {
            let slot = types.find(DEFAULT_TYPE)?;
            return Ok(types.get(slot).name.clone());
        }
        let (payload, _) = checked(bytes, types.table())?;
        let slot = type_told_by(&mut types, &payload)?;
        Ok(types.get(slot).name.clone())
    }

    /// Types that are taken under `*` are counted from the beginning.
    fn table(&self) -> TypeRegistry {
        TypeRegistry::new(self.0.clone(), &Arc::default())
    }
}
