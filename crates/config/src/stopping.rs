//! `stop_delay` and `stop_deliver`: the times of a stop.

use std::time::Duration;

use settings::{Section, Setting, SettingsReader, Unset};

/// The setting of a gateway. Load balancers check every few seconds, so a longer delay is a mistake.
pub(crate) const DELAY: Setting = Setting::duration(
    "stop_delay",
    (Duration::ZERO, Duration::from_mins(10)),
    "how long the gateway still accepts events after SIGTERM while `/readyz` answers 503, so load balancers notice \
     ([stopping](../../guides/stop-and-restart.md))",
)
.or(Unset::Duration(Duration::ZERO))
.example("\"10s\"");
/// The setting of a writer.
pub(crate) const DELAY_OF_WRITER: Setting = Setting {
    text: "how long the writer still serves gateways after SIGTERM. `/readyz` answers 503, and each response asks gateways to use another \
           writer ([stopping](../../guides/stop-and-restart.md))",
    ..DELAY
};
/// The setting of a gateway alone: a writer has nothing left to deliver.
pub(crate) const DELIVER: Setting = Setting::duration(
    "stop_deliver",
    (Duration::ZERO, Duration::from_hours(24)),
    "how long a stop delivers events from the journal. The remaining events wait for the next start; with `0s` all of them do",
)
.or(Unset::Duration(Duration::from_secs(10)));

/// The longest time of each part of a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopping {
    /// How long requests are still accepted while `/readyz` answers 503.
    pub delay: Duration,
    /// How long events of the journal are delivered. The others wait for the next start.
    pub deliver: Duration,
}

/// Reads both settings.
pub(crate) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Stopping {
    let deliver = reader.duration_or_default(section, &DELIVER);
    Stopping { delay: read_delay(reader, section), deliver }
}

/// Reads `stop_delay`.
pub(crate) fn read_delay(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Duration {
    reader.duration_or_default(section, &DELAY)
}
