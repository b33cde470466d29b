//! `[otlp]` and `[statsd]`: where a process sends its metrics and spans. Both roles have them.

pub(crate) mod otlp;
pub(crate) mod statsd;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use settings::{Section, Setting, SettingsReader, Unset};

use otlp::OtlpConfig;
use statsd::StatsdConfig;

/// How often metrics are sent, to either.
const INTERVAL: Setting =
    Setting::duration("interval", (Duration::from_secs(1), Duration::from_hours(1)), "the time between two pushes")
        .or(Unset::Duration(Duration::from_secs(10)))
        .restart();

/// Where a process sends its metrics and spans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Push {
    /// The collector of OpenTelemetry, if there is one.
    pub otlp: Option<OtlpConfig>,
    /// The receiver of StatsD, if there is one.
    pub statsd: Option<StatsdConfig>,
}

/// Reads both tables, if the file or the environment has them; relative paths start at `folder`.
pub(crate) fn read(reader: &mut SettingsReader<'_>, file: &Section<'_>, folder: &Path) -> Push {
    Push { otlp: otlp::read(reader, file, folder), statsd: statsd::read(reader, file) }
}

/// A line for each, for the summary of a configuration.
impl fmt::Display for Push {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(otlp) = &self.otlp {
            writeln!(f, "otlp    {otlp}")?;
        }
        self.statsd.as_ref().map_or(Ok(()), |statsd| writeln!(f, "statsd  {statsd}"))
    }
}
