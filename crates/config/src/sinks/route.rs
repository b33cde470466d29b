//! Routes to sinks.

use std::fmt;

use ledger::Condition;

use crate::sinks::name::SinkName;

/// A way to a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The sink.
    pub to: SinkName,
    /// Which events: those on which this is true, or all.
    pub when: Option<Condition>,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.to)?;
        self.when.as_ref().map_or(Ok(()), |when| write!(f, " when {when}"))
    }
}

/// Routes in one line.
pub(crate) fn listed(routes: &[Route]) -> String {
    routes.iter().map(Route::to_string).collect::<Vec<_>>().join(", ")
}
