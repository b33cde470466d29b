//! The quarantine of a type: where its rejected events are stored, and how many of them.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use event::TypeName;

/// Rejected events of a type that are stored one after the other, after a pause: those of a small bad batch.
const BURST: u64 = 100;
/// Further ones in a second.
const PER_SECOND: u64 = 10;
/// Each further piece of so many bytes counts as one more event, as it takes that long to hash.
const PIECE_BYTES: usize = 64 * 1024;
/// If the time is this much earlier than before, in microseconds, the clock was set back.
const CLOCK_STEP: i64 = 1_000_000;
/// A token of the bucket, in the bucket's unit: with it a microsecond adds whole units.
const TOKEN: u64 = 1_000_000;

/// Where the rejected events of a type are stored, and what is kept of them.
pub struct RefusedTo {
    to: TypeName,
    /// If the type's transform hides something, neither bytes nor a plain hash of them are kept: a secret of the process is hashed with
    /// them.
    secret: Option<[u8; 32]>,
    bucket: Mutex<Bucket>,
}

/// A token bucket.
struct Bucket {
    units: u64,
    /// When it was filled up last, in microseconds since 1970.
    at: i64,
}

impl fmt::Debug for RefusedTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefusedTo").field("to", &self.to).field("hides", &self.hides()).finish_non_exhaustive()
    }
}

impl RefusedTo {
    /// Rejected events are stored as events of type `to`, with their first bytes.
    #[must_use]
    pub fn new(to: TypeName) -> Self {
        Self { to, secret: None, bucket: Mutex::new(Bucket { units: BURST * TOKEN, at: 0 }) }
    }

    /// The same without their bytes, for a type whose transform hides something. `secret` must be random.
    #[must_use]
    pub fn without_bytes(to: TypeName, secret: [u8; 32]) -> Self {
        Self { secret: Some(secret), ..Self::new(to) }
    }

    pub(crate) const fn to(&self) -> &TypeName {
        &self.to
    }

    pub(crate) const fn secret(&self) -> Option<&[u8; 32]> {
        self.secret.as_ref()
    }

    const fn hides(&self) -> bool {
        self.secret.is_some()
    }

    /// Whether the rate allows one more event of so many bytes at `now` (microseconds since 1970).
    pub(crate) fn allows(&self, bytes: usize, now: i64) -> bool {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        // A clock that was set back adds nothing, nor does a request that began before another one that was counted first.
        let passed = u64::try_from(now.saturating_sub(bucket.at)).unwrap_or(0);
        let filled = bucket.units.saturating_add(passed.saturating_mul(PER_SECOND)).min(BURST * TOKEN);
        let tokens = 1 + (bytes / PIECE_BYTES) as u64;
        let left = filled.checked_sub(tokens * TOKEN);
        let is_earlier = (1..CLOCK_STEP).contains(&bucket.at.saturating_sub(now));
        *bucket = Bucket { units: left.unwrap_or(filled), at: if is_earlier { bucket.at } else { now } };
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(refused_to: &RefusedTo, bytes: usize, now: i64) -> usize {
        (0..1000).filter(|_| refused_to.allows(bytes, now)).count()
    }

    #[test]
    fn quarantine_stores_a_burst_then_ten_per_second() {
        let refused_to = RefusedTo::new(TypeName::new("refused").unwrap());
        let start = 1_795_168_800_000_000;
        assert_eq!(counted(&refused_to, 10, start), 100);
        assert_eq!(counted(&refused_to, 10, start + 50_000), 0);
        assert_eq!(counted(&refused_to, 10, start + 1_000_000), 10);
        assert_eq!(counted(&refused_to, 10, start), 0, "the clock was set back");
        assert_eq!(counted(&refused_to, 10, start + 3_600_000_000), 100);
    }

    #[test]
    fn quarantine_stores_fewer_large_events() {
        let refused_to = RefusedTo::new(TypeName::new("refused").unwrap());
        assert_eq!(counted(&refused_to, 1024 * 1024, 1), 5);
    }
}
