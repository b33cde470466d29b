//! What is known of a lane between its calls.

use super::cursor::Cursor;
use sink::Held;

/// What is known of a lane.
#[derive(Debug, Default)]
pub(super) struct LaneState {
    /// The lane's last cursor, which saves a question: the server takes a batch only behind the cursor that it has. Unknown after a failure.
    pub(super) cursor: Option<Cursor>,
}

impl LaneState {
    pub(super) fn goes_on_from(&mut self, cursor: Cursor) -> Held {
        let held = Held::new(cursor.position, cursor.claim);
        self.cursor = Some(cursor);
        held
    }
}
