//! The settings of sinks of kind `nats`: the servers, the stream and its subjects.

use sink::{Destination, Layout, Sink, SinkKind, StoreConfig};
use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::{Creation, Nats, NatsConfig, REPLICAS_MAX, StreamName, SubjectPattern};
use settings::client::{self, ca, connections_max, timeout};
use settings::{Diagnostic, Kind, PATH, Section, Setting, SettingsReader, URL, Unset, parsed, path};

/// The settings for creating the stream.
const OF_CREATION: [&str; 2] = ["replicas", "max_age"];
const STREAM_WRONG: &str = "isn't a valid stream name";
const SUBJECT_WRONG: &str = "isn't a valid subject";
const SUBJECT: &str = "events.{type}";
const SETTINGS: &[Setting] = &[
    Setting::new(
        "url",
        URL,
        "`nats://USER:PASSWORD@HOST:PORT`; separate the hosts of a cluster by commas. `nats://TOKEN@HOST` for a token; `tls://` requires TLS",
    )
    .required()
    .example("\"nats://forebay:${NATS_PASSWORD}@one:4222,two:4222\""),
    Setting::new(
        "credentials",
        PATH,
        "a `.creds` file with a user's JWT and key, or a file with the seed of an nkey; relative to the configuration file. Read for each \
         connection",
    )
    .example("\"forebay.creds\""),
    client::CA,
    Setting::text("stream", "the stream's name: 1 to 128 of A-Z, a-z, 0-9, `_` and `-`. Two sinks can't share one")
        .required()
        .example("\"EVENTS\""),
    Setting::text(
        "subject",
        "the subject: words of A-Z, a-z, 0-9, `_` and `-` between dots, or `{type}`, `{day}`, `{hour}`. The first word is fixed and not `forebay`",
    )
    .or(Unset::Text(SUBJECT)),
    Setting::new("create", Kind::Boolean, "`true` creates a missing stream").or(Unset::Boolean(true)),
    REPLICAS,
    MAX_AGE,
    Setting { text: "how long the server may take for one batch", ..client::TIMEOUT },
    Setting {
        default: Unset::Integer(NatsConfig::CONNECTIONS_MAX.get() as i64),
        text: "connections to the server, shared by [lanes](../../concepts/glossary.md#lane)",
        ..client::MAX_CONNECTIONS
    },
];
const REPLICAS: Setting =
    Setting::integer("replicas", (1, REPLICAS_MAX as i64), "copies of a stream that Forebay creates")
        .or(Unset::Integer(1));
/// A stream that keeps messages for less time would lose them before a client can read them.
const MAX_AGE: Setting = Setting::duration(
    "max_age",
    (Duration::from_mins(1), Duration::from_hours(100 * 365 * 24)),
    "how long a stream that Forebay creates keeps a message",
)
.or(Unset::Described("no limit"))
.example("\"30d\"");

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
    let replicas = reader.number(section, &REPLICAS);
    let age_max = reader.duration(section, &MAX_AGE);
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

/// Sinks of kind `nats`.
pub static KIND: SinkKind = SinkKind {
    settings: &[SETTINGS],
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
