//! `[otlp]`: the collector that gets metrics and traces over HTTP.

use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use net::http_client::Endpoint;
use settings::client::{self, ca, each};
use settings::{Diagnostic, InvalidValue, Section, Setting, SettingsReader, TEXTS, URL, Unset, names};

use super::INTERVAL;
use crate::server_address;

/// The table's name.
pub(crate) const TABLE: &str = "otlp";
/// The settings of `[otlp]`.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting::new(
        URL_KEY,
        URL,
        "the collector's base URL, without a user. Forebay appends `/v1/metrics` and `/v1/traces`",
    )
    .required()
    .example("\"http://collector:4318\"")
    .restart(),
    Setting::new("headers", TEXTS, "additional headers of each request, as `Name: value`")
        .example("[\"Authorization: Bearer ${OTLP_TOKEN}\"]")
        .restart(),
    client::CA.restart(),
    INTERVAL,
    SAMPLE,
];
/// How many requests are sampled whose sender doesn't.
const SAMPLE: Setting = Setting::integer(
    "sample",
    (1, 1_000_000_000),
    "records [spans](../../guides/opentelemetry.md#send-traces) of one in so many posts whose sender does not record its trace",
)
.or(Unset::Described("none of them"))
.example("1000")
.restart();
const URL_KEY: &str = "url";
/// The headers that Forebay sets in each request.
const OWN_HEADERS: [&str; 5] = ["connection", "content-length", "content-type", "host", "transfer-encoding"];

/// The collector of OpenTelemetry.
#[derive(Clone, PartialEq, Eq)]
pub struct OtlpConfig {
    /// Its base URL.
    pub url: Endpoint,
    /// Further headers of each request. Their values are secrets.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// A PEM file with the trusted authorities; without one the machine's.
    pub ca: Option<PathBuf>,
    /// The time between two pushes.
    pub interval: Duration,
    /// One in so many requests is sampled whose sender doesn't record its trace.
    pub sample: Option<NonZeroU32>,
}

/// Reads the table, if the file or the environment has it; relative paths start at `folder`.
pub(super) fn read(reader: &mut SettingsReader<'_>, file: &Section<'_>, folder: &Path) -> Option<OtlpConfig> {
    let section = reader.table(file, TABLE);
    if file.get(TABLE).is_none() && !reader.is_set(&section, URL_KEY) {
        return None;
    }
    reader.check_keys(&section, names(SETTINGS));
    let help = "add the collector, as in url = \"http://collector:4318\"";
    let url = reader.required(&section, URL_KEY, help, |text| {
        server_address::parse(text)
            .map_err(|error| InvalidValue::new("is not the URL of a collector", error.to_string()))
    });
    let at = section.get(URL_KEY).map_or_else(|| section.span().clone(), |(span, _)| span);
    let headers = each(reader, &section, "headers", header);
    let ca = ca(reader, &section, folder);
    let interval = reader.duration_or_default(&section, &INTERVAL);
    let sample = reader.number::<u32>(&section, &SAMPLE).and_then(|found| NonZeroU32::new(found.value));
    let url = url?;
    if url.is_in_clear() && !headers.is_empty() {
        let title = format!("`{}` are sent without TLS", section.key_path("headers"));
        let help = "use https://, unless the network between the two is trusted".to_owned();
        reader.push(Diagnostic::warning(title, at, "others on the network can read them").help(help));
    }
    Some(OtlpConfig { url, headers, ca, interval, sample })
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), InvalidValue> {
    let wrong = |what: &str| InvalidValue::new("contains an invalid header", what.to_owned());
    let (name, value) = text.split_once(':').ok_or_else(|| wrong("expected `Name: value`"))?;
    let name: HeaderName = name.trim().parse().map_err(|_| wrong("expected `Name: value`"))?;
    if OWN_HEADERS.contains(&name.as_str()) {
        return Err(wrong("Forebay sets this header in every request"));
    }
    let mut value: HeaderValue = value.trim().parse().map_err(|_| wrong("expected `Name: value`"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

impl fmt::Display for OtlpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "metrics and spans to {} every {}", self.url, humantime::format_duration(self.interval))?;
        self.sample.map_or(Ok(()), |sample| write!(f, ", spans of one in {sample} posts"))
    }
}

/// Without the values of headers.
impl fmt::Debug for OtlpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OtlpConfig({self})")
    }
}
