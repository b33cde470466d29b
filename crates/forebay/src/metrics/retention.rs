//! The metric of rows that sinks delete because of their age: a server and a writer have it.

use super::exposition::Exposition;
use crate::retention::RetentionBoard;

pub(crate) fn add(text: &mut Exposition, board: &RetentionBoard) {
    let help = "Rows deleted because they were older than the sink's retention, by sink.";
    text.counter("forebay_retention_deleted_rows_total", help, |series| {
        for (name, rows) in board.deleted() {
            series.count(&[("sink", &name)], rows);
        }
    });
}
