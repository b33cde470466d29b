//! The settings of sinks of kind `elasticsearch`, also for OpenSearch: the servers, the indices and their documents.

use sink::{ALLOW_UNSAFE, AllowedRisks, Destination, JsonLimits, Layout, Sink, SinkKind, StoreConfig};
use std::fmt;
use std::path::Path;

use crate::durability;
use crate::{
    ApiKey, DocumentConflictPolicy, DocumentShape, Elasticsearch, ElasticsearchConfig, IndexPattern, IndexTarget,
    NodeList, Template,
};
use settings::client::{self, ca, requests_max, timeout};
use settings::files;
use settings::{
    Diagnostic, InvalidValue, Kind, Located, PATH, Section, Setting, SettingsReader, URL, Unset, parsed, path, size,
    words,
};

const LIMITS: JsonLimits = JsonLimits { rejects_nul: false, rejects_duplicate_keys: true };
const INDEX: &str = "{type}-{day}";
const SETTINGS: &[Setting] = &[
    Setting::new(
        "url",
        URL,
        "`https://USER:PASSWORD@HOST:PORT` or `http://…`, optionally with a path. Separate nodes by commas (at most 32); Forebay asks them one \
         after the other. Default port: 443 or 80. Percent-encode special characters",
    )
    .required()
    .example("\"https://forebay:${SEARCH_PASSWORD}@one:9200,https://forebay:${SEARCH_PASSWORD}@two:9200\""),
    Setting::text("api_key", "an API key as the store issues it (`encoded`), instead of users in `url`").example("\"${API_KEY}\""),
    client::CA,
    Setting::text(
        "index",
        "the [index](sinks.md#names-of-indices) or data stream: a-z, 0-9, `-_+.` and `{type}`, `{day}`, `{hour}`, at most 160 bytes. Two sinks \
         can't share one",
    )
    .or(Unset::Text(INDEX)),
    Setting::flag(
        "data_stream",
        "`true` if `index` names data streams. Forebay creates a missing one before its first event, and \
         [rejects](../../guides/stores/elasticsearch.md#data-streams-and-templates) an index of that name",
    ),
    Setting::flag("envelope", "`true` puts the payload into a member `payload`, next to the event's metadata"),
    Setting::new(
        "timestamp",
        Kind::Boolean,
        "`true` adds `@timestamp` if the payload has none; `false` is for \
         [strict mappings](../../guides/stores/elasticsearch.md#without-timestamp), and conflicts with `data_stream = true`",
    )
    .or(Unset::Boolean(true)),
    Setting::new(
        "template",
        PATH,
        "a JSON file with an index template, relative to the configuration file. Forebay installs it under the file's name without extension, \
         unless that name exists",
    )
    .example("\"access.json\""),
    Setting::choice(
        "conflict",
        &words(&CONFLICTS),
        "for an event whose id belongs to another document ([existing ids](../../guides/stores/elasticsearch.md#existing-ids))",
    )
    .or(Unset::Text("dead")),
    REQUEST_BYTES,
    Setting { text: "concurrent requests, for all shards together", ..client::MAX_REQUESTS },
    Setting::flag("gzip", "whether requests are compressed"),
    Setting {
        text: "how long the store may make no progress with a request or its response ([timeouts](sinks.md#timeouts-of-http-stores))",
        ..client::TIMEOUT
    },
    Setting::new(
        ALLOW_UNSAFE,
        Kind::List(&Kind::Choice(&durability::NAMES)),
        "settings of the store that are accepted although [a crash loses stored events](../../concepts/guarantees.md#unsafe-store-settings)",
    )
    .example("[\"translog_async\"]"),
];
const REQUEST_BYTES: Setting = Setting::size(
    "request_bytes",
    (limits::STORE_REQUEST_BYTES_MIN as u64, limits::STORE_REQUEST_BYTES_MAX as u64),
    "about how many bytes of documents a request has",
)
.or(Unset::Size(limits::STORE_REQUEST_BYTES as u64));

const CONFLICTS: [(&str, DocumentConflictPolicy); 4] = [
    ("dead", DocumentConflictPolicy::DeadLetter),
    ("ignore", DocumentConflictPolicy::Ignore),
    ("overwrite", DocumentConflictPolicy::Overwrite),
    ("merge", DocumentConflictPolicy::Merge),
];

/// Reads the settings; relative paths start at `folder`.
fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, folder: &Path) -> Option<ElasticsearchConfig> {
    let nodes = nodes(reader, section);
    let api_key = reader.text(section, "api_key", api_key).map(|found| found.value);
    let ca = ca(reader, section, folder);
    let index = reader.text_or(section, "index", INDEX, parsed("isn't a valid index name"));
    let is_stream = reader.boolean(section, "data_stream").is_some_and(|found| found.value);
    let has_envelope = reader.boolean(section, "envelope").is_some_and(|found| found.value);
    let has_timestamp = timestamp(reader, section, is_stream);
    let template = template(reader, section, folder);
    let conflict = conflict(reader, section, is_stream);
    let request_bytes = reader.text(section, "request_bytes", request_bytes).map(|found| found.value);
    let requests_max = requests_max(reader, section);
    let gzip = reader.boolean(section, "gzip").is_some_and(|found| found.value);
    let timeout = timeout(reader, section);
    let allowed = AllowedRisks::read(reader, section, &durability::NAMES);
    Some(ElasticsearchConfig {
        nodes: nodes?,
        api_key,
        ca,
        index: index?,
        target: if is_stream { IndexTarget::DataStream } else { IndexTarget::Indices },
        shape: if has_envelope { DocumentShape::Envelope } else { DocumentShape::Payload },
        has_timestamp,
        template,
        conflict,
        request_bytes: request_bytes.unwrap_or(limits::STORE_REQUEST_BYTES),
        requests_max: requests_max?,
        gzip,
        timeout,
        allowed,
    })
}

/// Reads the layout from a gateway's table for a writer's sink.
fn read_layout(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Layout {
    let index = reader.text_or(section, "index", INDEX, parsed("isn't a valid index name"));
    let is_stream = reader.boolean(section, "data_stream").is_some_and(|found| found.value);
    let has_envelope = reader.boolean(section, "envelope").is_some_and(|found| found.value);
    let conflict = conflict(reader, section, is_stream);
    layout_of(index.as_ref(), is_stream, has_envelope, conflict)
}

fn nodes(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<NodeList> {
    let help = "add the server, as in url = \"http://127.0.0.1:9200\"";
    reader.required(section, "url", help, parsed("is not the URL of a server"))
}

fn api_key(text: &str) -> Result<ApiKey, InvalidValue> {
    let wanted = "expected the store's `encoded` form: ASCII letters, digits and signs without a space";
    ApiKey::new(text).ok_or_else(|| InvalidValue::new("isn't an API key", wanted))
}

fn timestamp(reader: &mut SettingsReader<'_>, section: &Section<'_>, is_stream: bool) -> bool {
    let Some(found) = reader.boolean(section, "timestamp") else { return true };
    if is_stream && !found.value {
        let title = format!("`{}` can't be false for data streams", section.key_path("timestamp"));
        let label = "a data stream rejects documents without `@timestamp`: remove the setting";
        reader.push(Diagnostic::new(title, found.span, label));
    }
    found.value
}

/// The file is read now, so its errors are reported with all others.
fn template(reader: &mut SettingsReader<'_>, section: &Section<'_>, folder: &Path) -> Option<Template> {
    let Located { value: path, span } = path::read(reader, section, "template", folder, "expected the path of a file")?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let body = files::read_text(&path).map_err(|error| error.to_string());
    match body.and_then(|body| Template::new(&name, body).map_err(|error| error.to_string())) {
        Ok(template) => Some(template),
        Err(why) => {
            let title = format!("`{}` can't be used: {why}", section.key_path("template"));
            reader.push(Diagnostic::new(title, span, format!("this is {}", path.display())));
            None
        }
    }
}

fn conflict(reader: &mut SettingsReader<'_>, section: &Section<'_>, is_stream: bool) -> DocumentConflictPolicy {
    let Some(found) = reader.text(section, "conflict", conflict_rule) else { return DocumentConflictPolicy::default() };
    if is_stream && matches!(found.value, DocumentConflictPolicy::Overwrite | DocumentConflictPolicy::Merge) {
        let title = format!("unused setting `{}` for data streams", section.key_path("conflict"));
        reader.push(Diagnostic::new(title, found.span, "documents in a data stream are never overwritten"));
    }
    found.value
}

fn conflict_rule(text: &str) -> Result<DocumentConflictPolicy, InvalidValue> {
    settings::one_of(&CONFLICTS, text, "isn't a rule for existing ids")
}

fn request_bytes(text: &str) -> Result<usize, InvalidValue> {
    let (min, max) = (limits::STORE_REQUEST_BYTES_MIN, limits::STORE_REQUEST_BYTES_MAX);
    let bytes = usize::try_from(size::parse(text)?).ok().filter(|bytes| (min..=max).contains(bytes));
    bytes.ok_or_else(|| InvalidValue::new("is out of range", format!("expected {}KiB to {}MiB", min >> 10, max >> 20)))
}

fn layout_of(
    index: Option<&IndexPattern>,
    is_stream: bool,
    has_envelope: bool,
    conflict: DocumentConflictPolicy,
) -> Layout {
    let conflict = CONFLICTS.iter().find(|(_, known)| *known == conflict).map_or("", |(name, _)| name);
    let mut parts = vec![
        ("data_stream", is_stream.to_string()),
        ("envelope", has_envelope.to_string()),
        ("conflict", conflict.to_owned()),
    ];
    parts.extend(index.map(|index| ("index", index.to_string())));
    parts
}

/// Sinks of kind `elasticsearch`.
pub static KIND: SinkKind = SinkKind {
    settings: &[SETTINGS],
    secrets: &["api_key"],
    urls: &["url"],
    layout: &[
        ("index", &["index"]),
        ("data_stream", &["data_stream"]),
        ("envelope", &["envelope"]),
        ("conflict", &["conflict"]),
    ],
    read_layout,
    recognises_ids: true,
    json_limits_of: |_| LIMITS,
    ..SinkKind::new("elasticsearch", |reader, section, folders| {
        Some(Box::new(read(reader, section, folders.configuration)?))
    })
};

impl StoreConfig for ElasticsearchConfig {
    fn kind(&self) -> &'static SinkKind {
        &KIND
    }

    fn build(&self) -> Sink {
        Sink::new(Elasticsearch::new(self.clone()))
    }

    fn destination(&self) -> Option<Destination> {
        let id = vec![self.kind().name.to_owned(), self.nodes.to_string(), self.index.to_string()];
        Some(Destination { id, what: "index", another: "another `url` or `index`" })
    }

    fn layout(&self) -> Layout {
        let (is_stream, has_envelope) = (self.target == IndexTarget::DataStream, self.shape == DocumentShape::Envelope);
        let mut parts = layout_of(Some(&self.index), is_stream, has_envelope, self.conflict);
        if !self.has_timestamp {
            // Writers of older versions don't report it, and always write it.
            parts.push(("timestamp", false.to_string()));
        }
        parts
    }

    fn can_read(&self) -> bool {
        Self::can_read(self)
    }

    fn why_not_read(&self) -> &'static str {
        "its documents lack the fields that identify events: set `envelope = true`, without `data_stream`"
    }

    fn json_limits(&self) -> JsonLimits {
        LIMITS
    }
}

impl fmt::Display for ElasticsearchConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.target == IndexTarget::DataStream { "data stream" } else { "index" };
        write!(f, "elasticsearch {}, {what} {}", self.nodes, self.index)
    }
}
