//! The memory budget of bodies, which the service keeps.

use crate::error::RequestError;

/// Counts the bytes of bodies that are kept in memory.
pub trait BodyBudget {
    /// Why the budget rejects bytes, or why the body can't be read.
    type Error: From<Box<RequestError>>;

    /// Counts bytes that have arrived.
    ///
    /// # Errors
    /// There is no room for them.
    fn admit(&mut self, bytes: usize) -> Result<(), Self::Error>;
}
