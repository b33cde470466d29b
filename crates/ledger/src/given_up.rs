//! Events of removed routes that the operator gives up.

use event::TypeName;
use text::OperatorCommand;

use crate::routes::SinkName;

/// What was given up of a sink's routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenUp {
    /// For each type how many of its events.
    pub routes: Vec<(TypeName, u64)>,
    /// Stopped lanes that continue after what their store has lost.
    pub lanes: u64,
}

/// The message if no route to the sink holds events that could be discarded.
pub fn nothing_held(sink: &SinkName, only: Option<&TypeName>) -> String {
    let from = only.map(|name| format!(" from type {name}")).unwrap_or_default();
    format!(
        "nothing to drop: no removed route{from} and no stopped lane of sink {sink} has undelivered events. To \
         resume a lane that has stopped because its store and the journal disagree, run {}",
        OperatorCommand::RouteAccept(sink)
    )
}
