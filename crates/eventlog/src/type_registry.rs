//! The types that have been seen: each has a small number by which it is counted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use event::TypeName;

use crate::unread_times::UnreadTimes;

/// A type's number within this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(u32);

impl TypeId {
    /// The number, from 0 on without gaps.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Whether events of a type are accepted now. Clones are the same gate.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<AtomicBool>);

impl Gate {
    /// Whether they are rejected, because too many already wait for a store.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Refuses them, or takes them again.
    pub fn set_closed(&self, closed: bool) {
        self.0.store(closed, Ordering::Relaxed);
    }
}

/// All types of a process. A type is never removed. The map is ordered, not hashed: names may come from clients.
#[derive(Debug, Default)]
pub struct Types {
    known: RwLock<Known>,
    unread_times: UnreadTimes,
}

#[derive(Debug, Default)]
struct Known {
    ids: BTreeMap<TypeName, TypeId>,
    names: Vec<TypeName>,
    gates: Vec<Gate>,
}

impl Types {
    /// The type's number; it gets one now if it has none.
    pub fn intern(&self, name: &TypeName) -> TypeId {
        if let Some(id) = self.get(name) {
            return id;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = known.ids.get(name) {
            return *id;
        }
        let id = TypeId(u32::try_from(known.names.len()).expect("types are bounded by the configuration"));
        known.names.push(name.clone());
        known.gates.push(Gate::default());
        known.ids.insert(name.clone(), id);
        id
    }

    /// The gate of a type.
    #[must_use]
    pub fn gate(&self, id: TypeId) -> Gate {
        self.known.read().unwrap_or_else(PoisonError::into_inner).gates[id.index()].clone()
    }

    /// The events whose times could not be read.
    #[must_use]
    pub const fn unread_times(&self) -> &UnreadTimes {
        &self.unread_times
    }

    /// All types with their gates.
    #[must_use]
    pub fn gates(&self) -> Vec<(TypeName, Gate)> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.names.iter().cloned().zip(known.gates.iter().cloned()).collect()
    }

    /// The type's number, if it has one.
    #[must_use]
    pub fn get(&self, name: &TypeName) -> Option<TypeId> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).ids.get(name).copied()
    }

    /// The number of the type with this name, which is from a record. Names there have been checked earlier, but damage
    /// may have gone unnoticed.
    #[must_use]
    pub fn intern_text(&self, name: &str) -> Option<TypeId> {
        TypeName::new(name).ok().map(|name| self.intern(&name))
    }

    /// All names, by number.
    #[must_use]
    pub fn names(&self) -> Vec<TypeName> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).names.clone()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.read().unwrap_or_else(PoisonError::into_inner).names.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
