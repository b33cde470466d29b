//! The settings of sinks of kind `nats`: the servers, the stream and its subjects.

use sink::{Destination, Layout, Sink, SinkKind, StoreConfig};
use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::{Creation, Nats, NatsConfig, REPLICAS_MAX, StreamName, SubjectPattern};
use settings::client::{ca, connections_max, timeout};
use settings::{Diagnostic, InvalidValue, Section, SettingsReader, duration, parsed, path};

/// The settings for creating the stream.
const OF_CREATION: [&str; 2] = ["replicas", "max_age"];
const STREAM_WRONG: &str = "isn't a valid stream name";
const SUBJECT_WRONG: &str = "isn't a valid subject";
const SUBJECT: &str = "events.{type}";
/// A stream that keeps messages for less time would lose them before a client can read them.
const AGE_MIN: Duration = Duration::from_mins(1);
const AGE_MAX: Duration = Duration::from_hours(100 * 365 * 24);

/// Reads the settings; relative paths start at `folder`.
fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, folder: &Path) -> Option<NatsConfig> {
    let help = "add the servers, as in url = \"nats://USER:PASSWORD@HOST:PORT\"";
    let servers = reader.required(section, "url", help, parsed("is not the URL of NATS servers"));
    let wanted = "expected the path of a file with a user's key";
    let credentials = path::read(reader, section, "credentials", folder, wanted).map(|found| found.value);
    let ca = ca(reader, section, folder);
    let help = "add its name, as in stream = \"EVENTS\"";
    let stream = reader.required(section, "stream", help, parsed(STREAM_WRONG));
    let subject = reader.text_or(section, "subject", SUBJECT, parsed(SUBJECT_WRONG));
    let creation = creation(reader, section);
    let timeout = timeout(reader, section);
    let connections_max = connections_max(reader, section).unwrap_or(NatsConfig::CONNECTIONS_MAX);
    let (servers, stream, subject) = (servers?, stream?, subject?);
    Some(NatsConfig { servers, credentials, ca, stream, subject, creation, timeout, connections_max })
}

/// Reads the layout from a gateway's table for a writer's sink.
fn read_layout(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Vec<(&'static str, String)> {
    let stream = reader.text::<StreamName>(section, "stream", parsed(STREAM_WRONG));
    let subject = reader.text_or::<SubjectPattern>(section, "subject", SUBJECT, parsed(SUBJECT_WRONG));
    let stream = stream.map(|found| ("stream", found.value.to_string()));
    stream.into_iter().chain(subject.map(|subject| ("subject", subject.to_string()))).collect()
}

/// How to create a missing stream, if at all.
fn creation(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<Creation> {
    let replicas = reader.integer(section, "replicas", replicas);
    let within = |text: &str| duration::within(text, AGE_MIN, AGE_MAX);
    let age_max = reader.text(section, "max_age", within);
    if reader.boolean(section, "create").is_none_or(|found| found.value) {
        return Some(Creation {
            replicas: replicas.map_or(1, |found| found.value),
            age_max: age_max.map(|found| found.value),
        });
    }
    let spans = [replicas.map(|found| found.span), age_max.map(|found| found.span)];
    for (setting, span) in OF_CREATION.into_iter().zip(spans) {
        let Some(span) = span else { continue };
        let title = format!("unused setting `{}` with create = false", section.key_path(setting));
        reader.push(Diagnostic::new(title, span, "only for creating the stream"));
    }
    None
}

fn replicas(number: i64) -> Result<u8, InvalidValue> {
    let number = u8::try_from(number).ok().filter(|number| (1..=REPLICAS_MAX).contains(number));
    number.ok_or_else(|| InvalidValue::new("is out of range", format!("expected 1 to {REPLICAS_MAX}")))
}

/// Sinks of kind `nats`.
pub static KIND: SinkKind = SinkKind {
    keys: &[
        &["url", "credentials", "ca", "stream", "subject"],
        &["create", "replicas", "max_age", "timeout", "max_connections"],
    ],
    urls: &["url"],
    is_fenced: true,
    layout: &[("stream", &["stream"]), ("subject", &["subject"])],
    read_layout,
    ..SinkKind::new("nats", |reader, section, folders| Some(Box::new(read(reader, section, folders.configuration)?)))
};

impl StoreConfig for NatsConfig {
    fn kind(&self) -> &'static SinkKind {
        &KIND
    }

    fn build(&self) -> Sink {
        Sink::new(Nats::new(self.clone()))
    }

    fn destination(&self) -> Option<Destination> {
        let id = vec![self.kind().name.to_owned(), self.servers.to_string(), self.stream.to_string()];
        Some(Destination { id, what: "stream", another: "another `url` or `stream`" })
    }

    fn layout(&self) -> Layout {
        vec![("stream", self.stream.to_string()), ("subject", self.subject.to_string())]
    }
}

impl fmt::Display for NatsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nats {}, stream {}, subject {}", self.servers, self.stream, self.subject)
    }
}
