//! Where messages for the operator go.

/// Where messages for the operator go.
pub trait Reporter: Send + Sync {
    /// Takes one message: a sentence without payloads or secrets.
    fn report(&self, message: &str);
}
