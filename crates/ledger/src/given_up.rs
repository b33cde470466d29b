//! Events of removed routes that the operator gives up.

use event::TypeName;
use text::OperatorCommand;

use crate::routes::SinkName;

/// What was given up of a sink's routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenUp {
    /// For each type how many of its events.
    pub routes: Vec<(TypeName, u64)>,
    /// Stopped lanes that go on behind what their store has lost.
    pub lanes: u64,
}

/// The message if no route to the sink holds events that could be discarded.
pub fn nothing_held(sink: &SinkName, only: Option<&TypeName>) -> String {
    let from = only.map(|name| format!(" from type {name}")).unwrap_or_default();
    format!(
        "no route{from} to sink {sink} holds events that could be given up: only one that was taken out of the \
         configuration does, or a lane that has stopped because its store has lost events. A lane that has stopped because of what \
         its store has goes on with: {}",
        OperatorCommand::RouteAccept(sink)
    )
}
