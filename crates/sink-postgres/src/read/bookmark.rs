//! The first bytes of bookmarks.

/// A bookmark of a page in the order of `ctid`.
pub(super) const AMONG_PLACES: u8 = b'p';
/// A bookmark of a page of ids.
pub(super) const AMONG_IDS: u8 = b'i';
/// A bookmark of a page in insertion order.
pub(super) const STORED: u8 = b's';
/// A bookmark of a page in insertion order, newest first.
pub(super) const STORED_BACK: u8 = b'b';
