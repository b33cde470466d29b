//! The settings of sinks of kind `webhook`: the receiver, the secrets of signatures, and the content of messages.

use sink::{Destination, Layout, Sink, SinkKind, StoreConfig};
use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;

use crate::{HookHeader, InvalidHook, MessageShape, Webhook, WebhookConfig};
use settings::client::{ca, each, requests, timeout};
use settings::{InvalidValue, Section, SettingsReader, parsed};

/// Reads the settings; relative paths start at `folder`.
fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, folder: &Path) -> Option<WebhookConfig> {
    let help = "add the receiver, as in url = \"https://hooks.example.org/forebay\"";
    let url = reader.required(section, "url", help, parsed("isn't the URL of a webhook"));
    let secrets = each(reader, section, "secrets", parsed("contains an invalid webhook secret"));
    let headers = each(reader, section, "headers", header);
    let has_envelope = reader.boolean(section, "envelope").is_some_and(|found| found.value);
    let requests_max = reader.integer(section, "max_requests", requests).map(|found| found.value);
    let (ca, timeout) = (ca(reader, section, folder), timeout(reader, section));
    Some(WebhookConfig {
        url: url?,
        secrets,
        headers,
        shape: if has_envelope { MessageShape::Envelope } else { MessageShape::Payload },
        requests_max: requests_max.or(NonZeroUsize::new(limits::STORE_REQUESTS))?,
        ca,
        timeout,
    })
}

fn header(text: &str) -> Result<HookHeader, InvalidValue> {
    let wrong = |error: InvalidHook| InvalidValue::new("contains an invalid header", error.to_string());
    let (name, value) = text.split_once(':').ok_or_else(|| wrong(InvalidHook::Header))?;
    HookHeader::new(name.trim(), value.trim()).map_err(wrong)
}

/// Sinks of kind `webhook`.
pub static KIND: SinkKind = SinkKind {
    keys: &[&["url", "secrets", "headers", "envelope", "max_requests", "ca", "timeout"]],
    secrets: &["secrets", "headers"],
    urls: &["url"],
    ..SinkKind::new("webhook", |reader, section, folders| Some(Box::new(read(reader, section, folders.configuration)?)))
};

impl StoreConfig for WebhookConfig {
    fn kind(&self) -> &'static SinkKind {
        &KIND
    }

    fn build(&self) -> Sink {
        Sink::new(Webhook::new(self.clone()))
    }

    fn destination(&self) -> Option<Destination> {
        let id = vec![self.kind().name.to_owned(), self.url.text().to_owned()];
        Some(Destination { id, what: "receiver", another: "another `url`" })
    }

    /// It has no store id: its address identifies it.
    fn layout(&self) -> Layout {
        vec![("url", self.url.to_string()), ("envelope", format!("{:?}", self.shape))]
    }
}

impl fmt::Display for WebhookConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "webhook {}", self.url)
    }
}
