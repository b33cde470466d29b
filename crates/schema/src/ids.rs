//! The numbers by which the parts of a compiled schema refer to each other.

/// The number of a subschema; that of the root is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubschemaId(pub usize);

impl SubschemaId {
    /// That of the root.
    pub const ROOT: Self = Self(0);
}

/// The number of a named schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResourceId(pub(super) usize);
