//! Checks that the data directory's disk is large enough at all. On a disk that is too small, every event would be rejected, and the operator
//! couldn't fix that while the process runs.

use std::path::Path;

use anyhow::bail;
use limits::{RESERVE_BYTES, SEGMENT_BYTES_MIN, STORE_BYTES_PER_BYTE};

const fn mebibytes_up(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// Checks that each shard has room for one segment, for a start that carries it over, and for the data of as many `stores` on the same disk.
///
/// # Errors
/// No event could ever be accepted: the message has the bytes needed and the disk's size.
pub(crate) fn check(
    path: &Path,
    bytes_all: u64,
    keep_free: Option<u64>,
    shards: u16,
    stores: u64,
) -> anyhow::Result<()> {
    let kept = journal::kept_free(keep_free, bytes_all).saturating_add(RESERVE_BYTES);
    let each = SEGMENT_BYTES_MIN * (2 + stores * STORE_BYTES_PER_BYTE);
    let needed = kept.saturating_add(each.saturating_mul(u64::from(shards)));
    // Some file systems don't say how large they are.
    if bytes_all > 0 && needed > bytes_all {
        bail!(
            "the disk of {} has {} MiB, and Forebay needs {} MiB: {} MiB kept free, and {} MiB for each of {shards} shards. Use a larger \
             disk, or lower `keep_free` in [journal] or `shards` in [gateway]",
            path.display(),
            bytes_all >> 20,
            mebibytes_up(needed),
            mebibytes_up(kept),
            mebibytes_up(each)
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn error_names_needed_and_available_space() {
        let check = |mib: u64, keep, shards, stores| super::check(Path::new("/d"), mib * MIB, keep, shards, stores);
        assert!(check(49, Some(16 * MIB), 2, 1).is_ok());
        let small = check(48, Some(16 * MIB), 2, 1).unwrap_err();
        assert_eq!(
            small.to_string(),
            "the disk of /d has 48 MiB, and Forebay needs 49 MiB: 17 MiB kept free, and 16 MiB for each of 2 shards. Use a larger \
             disk, or lower `keep_free` in [journal] or `shards` in [gateway]"
        );
        assert!(check(0, None, 2, 1).is_ok() && check(64, None, 2, 1).is_ok());
        assert!(check(1000, Some(1000 * MIB), 1, 0).is_err(), "more is kept free than there is");
        assert!(check(1000, Some(u64::MAX), 1, 0).is_err());
    }
}
