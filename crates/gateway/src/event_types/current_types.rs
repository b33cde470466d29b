//! The types that the shards accept now, for readers that are no shard.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::TypeRegistry;

/// The types that the shards accept now. Cheap to clone: a reload changes those of all clones.
#[derive(Clone)]
pub(crate) struct CurrentTypes(Arc<Mutex<Arc<TypeRegistry>>>);

impl CurrentTypes {
    pub(crate) fn new(types: Arc<TypeRegistry>) -> Self {
        Self(Arc::new(Mutex::new(types)))
    }

    /// Other types from now on.
    pub(crate) fn show(&self, types: Arc<TypeRegistry>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = types;
    }

    pub(crate) fn now(&self) -> Arc<TypeRegistry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for CurrentTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CurrentTypes")
    }
}
