//! Sets of types in one word, to skip blocks without reading their records.

use crate::checksum;

/// The bit of a type in [`BlockHeader::types`](crate::BlockHeader::types). Two types may share one: a set bit means
/// "may be present".
#[must_use]
pub fn type_bit(type_name: &str) -> u64 {
    1 << (checksum::seeded(0, type_name.as_bytes()) & 63)
}
