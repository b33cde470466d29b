//! `stop_delay` and `stop_deliver`: the times of a stop.

use std::time::Duration;

use settings::{Section, SettingsReader, duration};

/// The setting of a gateway and of a writer.
pub(crate) const DELAY: &str = "stop_delay";
/// The setting of a gateway alone: a writer has nothing left to deliver.
pub(crate) const DELIVER: &str = "stop_deliver";

/// Load balancers check every few seconds, so a longer delay is a mistake.
const DELAY_MAX: Duration = Duration::from_mins(10);
const DELIVER_MAX: Duration = Duration::from_hours(24);

/// The longest time of each part of a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopping {
    /// How long requests are still accepted while `/readyz` answers 503.
    pub delay: Duration,
    /// How long events of the journal are delivered. The others wait for the next start.
    pub deliver: Duration,
}

impl Default for Stopping {
    fn default() -> Self {
        Self { delay: Duration::ZERO, deliver: Duration::from_secs(10) }
    }
}

/// Reads both settings.
pub(crate) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Stopping {
    let Stopping { deliver, .. } = Stopping::default();
    let found = reader.text(section, DELIVER, |text| duration::within(text, Duration::ZERO, DELIVER_MAX));
    Stopping { delay: read_delay(reader, section), deliver: found.map_or(deliver, |found| found.value) }
}

/// Reads `stop_delay`.
pub(crate) fn read_delay(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Duration {
    let found = reader.text(section, DELAY, |text| duration::within(text, Duration::ZERO, DELAY_MAX));
    found.map_or(Stopping::default().delay, |found| found.value)
}
