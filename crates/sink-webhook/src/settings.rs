//! The settings of sinks of kind `webhook`: the receiver, the secrets of signatures, and the content of messages.

use sink::{Destination, Layout, Sink, SinkKind, StoreConfig};
use std::fmt;
use std::path::Path;

use crate::{HookHeader, InvalidHook, MessageShape, Webhook, WebhookConfig};
use settings::client::{self, ca, each, requests_max, timeout};
use settings::{InvalidValue, Section, Setting, SettingsReader, TEXTS, URL, Unset, parsed};

const SETTINGS: &[Setting] = &[
    Setting::new(
        "url",
        URL,
        "the URL of messages; `{type}` in its path is the event's type. It contains no user. Two sinks can't share one",
    )
    .required()
    .example("\"https://hooks.example.org/forebay/{type}\""),
    Setting::new(
        "secrets",
        TEXTS,
        "`whsec_` and the base64 of 24 to 64 random bytes, each; each message is signed with all of them",
    )
    .or(Unset::Described("messages aren't signed"))
    .example("[\"${WEBHOOK_SECRET}\"]"),
    Setting::new("headers", TEXTS, "additional headers of each request, as `Name: value`")
        .example("[\"Authorization: Bearer 123\"]"),
    Setting::flag("envelope", "`true`: a message has type, time and payload; `false`: only the payload"),
    client::MAX_REQUESTS,
    client::CA,
    Setting { text: "how long the receiver may take for one request", ..client::TIMEOUT },
];

/// Reads the settings; relative paths start at `folder`.
fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, folder: &Path) -> Option<WebhookConfig> {
    let help = "add the receiver, as in url = \"https://hooks.example.org/forebay\"";
    let url = reader.required(section, "url", help, parsed("isn't the URL of a webhook"));
    let secrets = each(reader, section, "secrets", parsed("contains an invalid webhook secret"));
    let headers = each(reader, section, "headers", header);
    let has_envelope = reader.boolean(section, "envelope").is_some_and(|found| found.value);
    let requests_max = requests_max(reader, section);
    let (ca, timeout) = (ca(reader, section, folder), timeout(reader, section));
    Some(WebhookConfig {
        url: url?,
        secrets,
        headers,
        shape: if has_envelope { MessageShape::Envelope } else { MessageShape::Payload },
        requests_max: requests_max?,
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
    settings: &[SETTINGS],
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
