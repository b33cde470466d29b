//! The backlog of removed routes that the operator discards.

use event::TypeName;
use text::OperatorCommand;

use crate::routes::SinkName;

/// What was discarded of a sink's routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discarded {
    /// For each type how many of its events.
    pub routes: Vec<(TypeName, u64)>,
    /// Stopped lanes that continue after what their store has lost.
    pub lanes: u64,
}

/// The message if there is no backlog to discard.
pub fn nothing_to_discard(sink: &SinkName, only: Option<&TypeName>) -> String {
    let from = only.map(|name| format!(" from type {name}")).unwrap_or_default();
    format!(
        "nothing to drop: no removed route{from} and no stopped lane of sink {sink} has undelivered events. To \
         resume a lane that has stopped because its store and the journal disagree, run {}",
        OperatorCommand::RouteAccept(sink)
    )
}
