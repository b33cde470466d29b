//! Sets of types in one word, to skip blocks without looking at their records.

use crate::checksum;

/// The bit that stands for a type in [`BlockHeader::types`](crate::BlockHeader::types). Two types may share one: a set bit means "perhaps".
#[must_use]
pub fn type_bit(type_name: &str) -> u64 {
    1 << (checksum::seeded(0, type_name.as_bytes()) & 63)
}
