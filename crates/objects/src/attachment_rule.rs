//! Which part of a payload becomes an object of its own.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::SideFolder;

/// Where it stands. A manifest has it, so that what is written again is the same, whatever the configuration says meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachmentRule {
    /// The JSON pointer to a text in base64 (RFC 4648 §4). Its bytes become an object, whose name takes its place.
    pub data: Arc<str>,
    /// The JSON pointer to the object's content type.
    pub content_type: Option<Arc<str>>,
    /// The folder of such objects.
    pub folder: SideFolder,
}
