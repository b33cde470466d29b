//! The types that one shard, or one batch, has used: found again without a lock or an allocation.

use std::collections::BTreeMap;
use std::sync::Arc;

use eventlog::TypeId;

use super::type_entry::{TypeEntry, TypeState};
use super::type_registry::TypeRegistry;
use crate::error_code::ErrorCode;
use crate::problem::Problem;

/// A type's place in its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(usize);

/// Types by name. It holds only accepted types, so their limit bounds it.
#[derive(Debug)]
pub(crate) struct TypeCache {
    table: Arc<TypeRegistry>,
    known: Vec<TypeEntry>,
    by_name: BTreeMap<Box<str>, Slot>,
    last: usize,
    /// How often a reload changed how heads are read.
    readings: u32,
}

impl TypeCache {
    pub(crate) const fn new(table: Arc<TypeRegistry>) -> Self {
        Self { table, known: Vec::new(), by_name: BTreeMap::new(), last: 0, readings: 0 }
    }

    /// Replaces the registry. Slots keep their types: a removed type is detected.
    pub(crate) fn renew(&mut self, table: Arc<TypeRegistry>) {
        for known in &mut self.known {
            match table.find_own(known.name.as_str()) {
                Ok(newer) => *known = newer,
                Err(problem) if problem.code == ErrorCode::UnknownType => known.state = TypeState::Gone,
                Err(_) => known.state = TypeState::Changing,
            }
        }
        if !self.table.reads_heads_like(&table) {
            self.readings = self.readings.wrapping_add(1);
        }
        self.table = table;
    }

    /// It changes when a reload changes how heads are read.
    pub(crate) const fn readings(&self) -> u32 {
        self.readings
    }

    /// Checks that each type that was used here has the same rules in `table`.
    ///
    /// # Errors
    /// A type is no longer accepted, or has other rules.
    pub(crate) fn check_used(&self, table: &TypeRegistry) -> Result<(), Problem> {
        self.known.iter().try_for_each(|known| table.check_rules(known))
    }

    pub(crate) const fn table(&self) -> &Arc<TypeRegistry> {
        &self.table
    }

    /// The type with this name. Usually it is the one that was looked up last.
    ///
    /// # Errors
    /// As [`TypeRegistry::find`].
    pub(crate) fn find(&mut self, name: &str) -> Result<Slot, Problem> {
        if self.table.has_names() {
            let table = self.table.clone();
            return self.find_resolved(&table.resolve(name)?);
        }
        self.find_resolved(name)
    }

    fn find_resolved(&mut self, name: &str) -> Result<Slot, Problem> {
        if self.known.get(self.last).is_some_and(|known| known.name.as_str() == name && known.is_taken()) {
            return Ok(Slot(self.last));
        }
        let slot = match self.by_name.get(name) {
            Some(slot) if self.known[slot.0].is_taken() => *slot,
            _ => self.found(self.table.find(name)?)?,
        };
        self.last = slot.0;
        Ok(slot)
    }

    /// The type as which an event of an unknown type is accepted.
    ///
    /// # Errors
    /// As [`TypeRegistry::take_unknown`].
    pub(crate) fn take_unknown(&mut self, problem: Problem) -> Result<Slot, Problem> {
        let known = self.table.take_unknown(problem)?;
        self.found(known)
    }

    /// The slot of a type that was found elsewhere, even by another registry.
    ///
    /// # Errors
    /// It is no longer accepted.
    pub(crate) fn find_again(&mut self, name: &str) -> Result<Slot, Problem> {
        let known = self.table.find_own(name)?;
        self.found(known)
    }

    /// The place of a type that the table knows; it may be that of another name.
    fn found(&mut self, known: TypeEntry) -> Result<Slot, Problem> {
        match self.by_name.get(known.name.as_str()) {
            Some(slot) if self.known[slot.0].is_taken() => Ok(*slot),
            Some(slot) => Err(self.known[slot.0].unknown_type_problem()),
            None => Ok(self.add(known)),
        }
    }

    /// Adds a type that is not there yet.
    pub(crate) fn add(&mut self, known: TypeEntry) -> Slot {
        let slot = Slot(self.known.len());
        self.by_name.insert(known.name.as_str().into(), slot);
        self.known.push(known);
        slot
    }

    /// Those of these types that were used here.
    pub(crate) fn used(&self, is_meant: impl Fn(TypeId) -> bool) -> impl Iterator<Item = &TypeEntry> {
        self.known.iter().filter(move |known| is_meant(known.id))
    }

    pub(crate) fn get(&self, slot: Slot) -> &TypeEntry {
        &self.known[slot.0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_types::type_rules::{GatewayTypes, TypeRules};

    #[test]
    fn type_slots_are_stable_and_removal_is_detected() {
        let table = |names: &[&str]| {
            let named = names.iter().map(|name| (event::TypeName::new(name).unwrap(), TypeRules::default())).collect();
            Arc::new(TypeRegistry::new(GatewayTypes { named, ..GatewayTypes::default() }, &Arc::default()))
        };
        let mut cache = TypeCache::new(table(&["a", "b"]));
        let [a, b] = ["a", "b"].map(|name| cache.find(name).unwrap());
        let fewer = table(&["a"]);
        assert_eq!(cache.check_used(&fewer).unwrap_err().code, ErrorCode::UnknownType);
        cache.renew(fewer);
        assert!(cache.get(a).check().is_ok() && cache.get(b).check().is_err());
        assert!(cache.find("b").is_err() && cache.find("a").ok() == Some(a) && cache.find("c").is_err());
        cache.renew(table(&["b", "c"]));
        assert!(cache.get(a).check().is_err() && cache.find("b").ok() == Some(b) && cache.find("c").is_ok());
    }

    #[test]
    fn each_name_has_one_slot() {
        let types = GatewayTypes { open: Some(TypeRules::default()), ..GatewayTypes::default() };
        let mut cache = TypeCache::new(Arc::new(TypeRegistry::new(types, &Arc::default())));
        let slots = ["a", "b", "a", "a", "b"].map(|name| cache.find(name).unwrap());
        assert_eq!(slots[0], slots[2]);
        assert_eq!(slots[0], slots[3]);
        assert_eq!(slots[1], slots[4]);
        assert_eq!(cache.get(slots[1]).name.as_str(), "b");
        assert_eq!(cache.known.len(), 2);
    }
}
