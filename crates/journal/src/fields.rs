//! The fields of a record: a tag, the length of the value, and the value.

use crate::endian::{get_u32, length_field};

const HEADER_BYTES: usize = 5;

/// Appends a field to `bytes`.
pub fn push_field(bytes: &mut Vec<u8>, tag: u8, value: &[u8]) {
    let [a, b, c, d] = length_field(value.len()).to_le_bytes();
    bytes.extend_from_slice(&[tag, a, b, c, d]);
    bytes.extend_from_slice(value);
}

/// The tags and values of the fields in `bytes`, up to the first that is cut off.
pub fn fields(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (tag, value, rest) = split_field(bytes)?;
        bytes = rest;
        Some((tag, value))
    })
}

/// The first field in `bytes`: its tag, its value, and what follows.
pub(crate) fn split_field(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
    let (value, rest) = rest.split_at_checked(get_u32(header, 1) as usize)?;
    Some((header[0], value, rest))
}
