//! Which part of a payload becomes a separate object: an attachment.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::SideFolder;

/// The rule for attachments. A manifest contains it, so a second attempt writes the same bytes even if the
/// configuration has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachmentRule {
    /// The JSON pointer to a text in base64 (RFC 4648 §4). Its bytes become an object, and the object's name replaces
    /// it.
    pub data: Arc<str>,
    /// The JSON pointer to the object's content type.
    pub content_type: Option<Arc<str>>,
    /// The folder of attachments.
    pub folder: SideFolder,
}
