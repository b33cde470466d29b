//! The limit of what all records of a group share.

use super::message::Fault;

/// Bytes of a resource, of a scope, and of the texts of a metric. Each record repeats them.
pub(super) const SHARED_BYTES_MAX: usize = 64 * 1024;
pub(super) const SHARED_TOO_LARGE: Fault =
    "the resource, the scope or the metric of the record has more than 65536 bytes: send fewer or shorter attributes";
