//! The events of an object, as delivery returns them to a store.

use std::any::Any;

use sink::{Batch, Reason};

/// Where the events of an object come from.
pub trait Parts: Any + Send {
    /// The next of its events, in the order of their positions; `None` after the last. The same manifest gets the same
    /// events each time.
    ///
    /// # Errors
    /// [`NoParts`]: they can't be read now.
    fn next(&mut self) -> Result<Option<Batch>, NoParts>;

    /// The same events from the first on: for a store that must know an object's size and digests before it is sent.
    fn again(&self) -> Box<dyn Parts>;
}

/// Why the events of an object can't be read now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoParts(pub Reason);

/// A batch that is one object.
pub(super) struct OnePart {
    batch: Batch,
    is_returned: bool,
}

impl OnePart {
    pub(super) const fn new(batch: Batch) -> Self {
        Self { batch, is_returned: false }
    }
}

impl Parts for OnePart {
    fn next(&mut self) -> Result<Option<Batch>, NoParts> {
        let is_first = !std::mem::replace(&mut self.is_returned, true);
        Ok(is_first.then(|| self.batch.clone()))
    }

    fn again(&self) -> Box<dyn Parts> {
        Box::new(Self::new(self.batch.clone()))
    }
}
