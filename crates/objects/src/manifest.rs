//! The properties of an object that are fixed before it is written.

use std::ops::RangeInclusive;

use event::Lane;
use serde::{Deserialize, Serialize};
use text::rfc3339;

use super::{AttachmentRule, Codec, Line, ObjectFormat, Period};
use sink::Claim;

/// The number of a claim's digits in names.
pub(super) const TOKEN: usize = 16;

/// The properties of an object, fixed and durable before its first byte is written: its events, its codec and its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The lane whose events it holds.
    pub lane: Lane,
    /// The first position that it accounts for.
    pub first: u64,
    /// The last one.
    pub last: u64,
    /// When the first of its events was received: microseconds since 1970, UTC.
    pub received_at: i64,
    /// The content of a line.
    pub line: Line,
    /// Its codec.
    pub codec: Codec,
    /// Which part of its events' payloads is a separate object.
    #[serde(rename = "attachments")]
    pub apart: Option<AttachmentRule>,
    /// The name of the lane's object before this one.
    pub previous: Option<String>,
    /// Its own name.
    pub name: String,
    /// The name of its description.
    #[serde(rename = "manifest")]
    pub description: String,
    /// The period of its events, if it holds those of one period.
    pub period: Option<Period>,
}

/// The events of an object, as its name shows them.
#[derive(Clone, Copy, Debug)]
pub struct Portion<'a> {
    /// The type, if objects hold events of one type each.
    pub type_name: &'a str,
    /// When the first of them was received: microseconds since 1970, UTC.
    pub received_at: i64,
    /// The time that `{day}` and `{hour}` are of.
    pub time: i64,
}

impl<'a> Portion<'a> {
    /// Events that are named by the time when the first of them was received.
    #[must_use]
    pub const fn received(type_name: &'a str, received_at: i64) -> Self {
        Self { type_name, received_at, time: received_at }
    }
}

impl Manifest {
    /// An object of these positions by the current rules: later rules don't change it. A process with a `claim` uses
    /// separate names: another process, on a copy of the data directory, may assign the same positions to other events.
    #[must_use]
    pub fn new(
        lane: Lane,
        run: RangeInclusive<u64>,
        portion: Portion<'_>,
        rules: &ObjectFormat,
        previous: Option<String>,
        claim: Option<Claim>,
    ) -> Self {
        let ObjectFormat { line, codec, prefix, apart, manifests, .. } = rules;
        let (line, codec, apart) = (*line, *codec, apart.clone());
        let Portion { type_name, received_at, time } = portion;
        let name = prefix.at(type_name, time) + &name(&lane, *run.start(), received_at, codec, claim);
        let (first, last, description, period) =
            (*run.start(), *run.end(), manifests.manifest_of(&name), prefix.period(time));
        Self { lane, first, last, received_at, line, codec, apart, previous, name, description, period }
    }

    /// Its name without the codec's suffix.
    pub(super) fn stem(&self) -> &str {
        self.name.strip_suffix(self.codec.ending()).unwrap_or(&self.name)
    }
}

/// The name sorts by time. It contains the sink, the gateway id and the process, so two objects never have the same
/// name.
fn name(lane: &Lane, first: u64, received_at: i64, codec: Codec, claim: Option<Claim>) -> String {
    let Lane { origin, shard, sink } = lane;
    let time = rfc3339::format(received_at);
    let (time, _) = time.split_once('.').unwrap_or((&time, ""));
    let time = time.replace(['-', ':'], "");
    // The lane of replays has a slash in its name.
    let sink = sink.replace('/', "-");
    let token = claim.map(|claim| format!("-{:.TOKEN$}", claim.to_string())).unwrap_or_default();
    format!("{sink}-{time}Z-{origin}-{shard:04}-{first:020}{token}{}", codec.ending())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use event::Origin;

    use super::*;
    use crate::SideFolder;

    #[test]
    fn name_contains_sink_time_lane_and_first_position() {
        let lane = Lane { origin: Origin([0xab; 16]), shard: 3, sink: "archive".into() };
        let age_max = Duration::from_secs(1);
        let (prefix, portion) = ("{day}/".parse().unwrap(), Portion::received("access", 1_760_000_000_123_456));
        let (line, codec, manifests) = (Line::Payload, Codec::Zstd, SideFolder::manifests());
        let rules = ObjectFormat { line, codec, bytes_max: 1, records_max: 1, age_max, prefix, apart: None, manifests };
        let manifest = Manifest::new(lane, 12..=90, portion, &rules, None, None);
        let name = format!("archive-20251009T085320Z-{}-0003-00000000000000000012", "ab".repeat(16));
        assert_eq!(manifest.name, format!("2025-10-09/{name}.ndjson.zst"));
        assert_eq!(manifest.description, format!("_manifests/2025-10-09/{name}.ndjson.zst.manifest.json"));
        let claim = Some(Claim([0xc1; 16]));
        let manifest = Manifest::new(manifest.lane, 12..=90, portion, &rules, None, claim);
        assert_eq!(manifest.name, format!("2025-10-09/{name}-c1c1c1c1c1c1c1c1.ndjson.zst"));
    }
}
