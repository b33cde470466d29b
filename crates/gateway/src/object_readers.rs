//! The sinks whose objects can be read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use event::object::ObjectReader;

/// The sinks that serve their objects, by name. Cheap to clone.
#[derive(Clone, Default)]
pub struct ObjectReaders(Arc<BTreeMap<Arc<str>, Arc<dyn ObjectReader>>>);

impl FromIterator<Arc<dyn ObjectReader>> for ObjectReaders {
    fn from_iter<T: IntoIterator<Item = Arc<dyn ObjectReader>>>(readers: T) -> Self {
        Self(Arc::new(readers.into_iter().map(|reader| (reader.name().clone(), reader)).collect()))
    }
}

impl ObjectReaders {
    pub(crate) fn get(&self, sink: &str) -> Option<&Arc<dyn ObjectReader>> {
        self.0.get(sink)
    }
}

impl fmt::Debug for ObjectReaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
