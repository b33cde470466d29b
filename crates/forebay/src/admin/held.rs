//! Large answers count as memory of reads until their clients have received them, so clients that don't read can't use up the memory.

use bytes::Bytes;
use gateway::{ReadMemory, StoredEvents};

use super::body::AdminBody;
use super::response::{AdminResponse, read_refused};

/// An answer of fewer bytes isn't counted: those of all connections fit into the reserve.
const COUNTED_MIN: usize = 64 * 1024;

/// An answer's bytes, and the memory that is counted for them.
struct Held(Bytes, #[expect(dead_code, reason = "is counted until it is dropped")] ReadMemory);

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// The answer, which is counted if it is large, or 503 if too much is in use.
pub(super) fn counted(large: AdminResponse, reads: &StoredEvents) -> AdminResponse {
    let AdminBody::Whole(Some(bytes)) = &large.body else { return large };
    if bytes.len() < COUNTED_MIN {
        return large;
    }
    match reads.hold(bytes.len()) {
        Ok(memory) => AdminResponse { body: Bytes::from_owner(Held(bytes.clone(), memory)).into(), ..large },
        Err(refused) => read_refused(refused),
    }
}
