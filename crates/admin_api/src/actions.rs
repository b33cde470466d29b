//! `GET /api/actions`: the actions of operators as JSON.

use serde::Serialize;

/// The last actions.
#[derive(Clone, Debug, Serialize)]
pub struct ActionsJson {
    /// The newest first.
    pub actions: Vec<ActionJson>,
}

/// One action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActionJson {
    pub at: String,
    pub by: String,
    pub action: &'static str,
    /// The filter, sink or file.
    pub target: String,
    pub result: String,
}
