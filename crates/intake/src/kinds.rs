//! The list of all kinds of intakes. To add a protocol is to add its folder here.

use crate::{IntakeKind, cloudevents, elasticsearch, loki, otlp_http, segment, splunk_hec, webhook};

/// All kinds.
pub static KINDS: &[&IntakeKind] = &[
    &elasticsearch::KIND,
    &otlp_http::KIND,
    &webhook::KIND,
    &cloudevents::KIND,
    &splunk_hec::KIND,
    &segment::KIND,
    &loki::KIND,
];

/// The kind of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static IntakeKind> {
    KINDS.iter().copied().find(|kind| kind.name == name)
}
