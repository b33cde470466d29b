//! Fixed-width little-endian fields within a byte slice. Offsets are constants of the format; callers check the slices'
//! lengths.

pub(crate) fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

pub(crate) fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

pub(crate) fn get_i64(bytes: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(array(bytes, at))
}

pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}

pub(crate) fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

/// A length as the format stores it. Blocks are far below 4 GiB (`limits::BLOCK_BYTES_MAX`).
pub(crate) fn length_field(length: usize) -> u32 {
    u32::try_from(length).expect("a block's length fits 32 bits")
}

/// `length` rounded up to a multiple of `unit`.
pub(crate) const fn round_up(length: usize, unit: usize) -> usize {
    length.div_ceil(unit) * unit
}
