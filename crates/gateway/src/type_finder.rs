//! Of which type an event would be, for people who try out a configuration: path, header, pointer, rules, the type of unknown ones.

use std::sync::Arc;

use event::TypeName;

use crate::beside::type_told_by;
use crate::event_request::checked;
use crate::problem::Refused;
use crate::rehearsal::{Around, Rejection};
use crate::request::DEFAULT_TYPE;
use crate::type_cache::TypeCache;
use crate::type_table::{GatewayTypes, TypeTable};

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
    pub fn named(&self, name: &str) -> Result<TypeName, Rejection> {
        self.table().find(name).map(|known| known.name).map_err(|problem| Rejection::new(problem.into()))
    }

    /// The type of an event with this payload whose path names none.
    ///
    /// # Errors
    /// What its sender would be answered.
    pub fn of_payload(&self, bytes: &[u8], around: &Around) -> Result<TypeName, Rejection> {
        match around.header(TYPE_HEADER) {
            Some(name) => self.named(name),
            None => self.told_by(bytes).map_err(Rejection::new),
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
    fn table(&self) -> TypeTable {
        TypeTable::new(self.0.clone(), &Arc::default())
    }
}
