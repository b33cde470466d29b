//! The state of a lane between its calls.

use super::cursor::Cursor;
use sink::Held;

/// The state of a lane.
#[derive(Debug, Default)]
pub(super) struct LaneState {
    /// The lane's last cursor, which saves a request: the server accepts a batch only after the cursor that it has.
    /// Unknown after a failure.
    pub(super) cursor: Option<Cursor>,
}

impl LaneState {
    pub(super) fn resume_at(&mut self, cursor: Cursor) -> Held {
        let held = Held::new(cursor.position, cursor.claim);
        self.cursor = Some(cursor);
        held
    }
}
