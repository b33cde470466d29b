//! `[statsd]`: the receiver that gets metrics over UDP.

use std::fmt;
use std::time::Duration;

use settings::{InvalidValue, Kind, Section, Setting, SettingsReader, Unset, names};

use super::INTERVAL;

/// The table's name.
pub(crate) const TABLE: &str = "statsd";
/// The settings of `[statsd]`.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting::new(
        ADDRESS_KEY,
        Kind::Text("host and port"),
        "the receiver of the datagrams. Forebay looks the host up before each push",
    )
    .required()
    .example("\"127.0.0.1:8125\"")
    .restart(),
    Setting::text(
        "prefix",
        "the beginning of each name, without the dot after it: up to 100 ASCII letters, digits, `_`, `-` and `.`",
    )
    .or(Unset::Text(""))
    .example("\"prod.eu\"")
    .restart(),
    INTERVAL,
];
const ADDRESS_KEY: &str = "address";
const PREFIX_BYTES_MAX: usize = 100;

/// The receiver of StatsD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatsdConfig {
    /// Its host and port.
    pub address: String,
    /// The beginning of each name, or empty.
    pub prefix: String,
    /// The time between two pushes.
    pub interval: Duration,
}

/// Reads the table, if the file or the environment has it.
pub(super) fn read(reader: &mut SettingsReader<'_>, file: &Section<'_>) -> Option<StatsdConfig> {
    let section = reader.table(file, TABLE);
    if file.get(TABLE).is_none() && !reader.is_set(&section, ADDRESS_KEY) {
        return None;
    }
    reader.check_keys(&section, names(SETTINGS));
    let help = "add the receiver, as in address = \"127.0.0.1:8125\"";
    let address = reader.required(&section, ADDRESS_KEY, help, address);
    let prefix = reader.text_or(&section, "prefix", "", prefix);
    let interval = reader.duration_or_default(&section, &INTERVAL);
    Some(StatsdConfig { address: address?, prefix: prefix?, interval })
}

fn address(text: &str) -> Result<String, InvalidValue> {
    let parts = text.rsplit_once(':').filter(|(host, _)| !host.is_empty() && !host.contains(['/', ' ', '@']));
    let is_good = parts.is_some_and(|(host, port)| {
        let is_bracketed = host.starts_with('[') && host.ends_with(']');
        (is_bracketed || !host.contains(':')) && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    if is_good { Ok(text.to_owned()) } else { Err(InvalidValue::new("is not an address", "expected HOST:PORT")) }
}

fn prefix(text: &str) -> Result<String, InvalidValue> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if text.len() <= PREFIX_BYTES_MAX && text.bytes().all(is_good) && !text.ends_with('.') {
        return Ok(text.to_owned());
    }
    let wanted = "expected up to 100 ASCII letters, digits, `_`, `-` and `.`, without a dot at the end";
    Err(InvalidValue::new("is not a prefix of names", wanted))
}

impl fmt::Display for StatsdConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "metrics to {} every {}", self.address, humantime::format_duration(self.interval))?;
        if self.prefix.is_empty() { Ok(()) } else { write!(f, ", names begin with {}.", self.prefix) }
    }
}
