//! The protocol between a gateway and a writer: paths, header fields, and answers as JSON. `docs/writer-protocol.md` documents it.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use event::Lane;
use serde::{Deserialize, Serialize};

use crate::object::ObjectLimits;
use net::http_client::shortened;
use sink::{Claim, Held, Mark, RejectedRecord, Retry, RetryScope, SinkError, Takeover, WriteOutcome};

/// The prefix of every path; the sink's name follows.
pub const PATH: &str = "/ingest/data";
/// The content type of a [frame](super::frame).
pub const CONTENT_TYPE: &str = "application/vnd.forebay.batch";
/// The content type of a writer's own refusal.
pub const PROBLEM: &str = "application/problem+json";
/// The lane: origin, shard and sink's name in the gateway's configuration, as in `0f…c1/0/warehouse`.
pub const LANE: &str = "forebay-lane";
/// The first and the last position that a batch accounts for, as in `101-200`.
pub const POSITIONS: &str = "forebay-positions";
/// The claim of the process that sends a batch, as 32 hexadecimal digits.
pub const CLAIM: &str = "forebay-claim";
/// The position up to which the lane knows its events to be stored: [`sink::Batch::floor`].
pub const FLOOR: &str = "forebay-floor";
/// The highest position that was ever sent to the sink before: [`sink::Batch::again`].
pub const AGAIN: &str = "forebay-again";
/// The mark of the store that the gateway's sink is bound to, as 32 hexadecimal digits.
pub const MARK: &str = "forebay-mark";
/// The [fingerprint](SinkInfo::fingerprint) of the sink that the gateway is bound to.
pub const LAYOUT: &str = "forebay-layout";
/// A draining writer sends it: its gateways then use another one.
pub const DRAINING: &str = "forebay-draining";
/// The interval of heartbeats while the store works: newlines before the answer.
pub const HEARTBEAT: Duration = Duration::from_secs(1);
/// A gateway doesn't use a connection that was idle for so long.
pub const IDLE_MAX: Duration = net::http_client::IDLE_MAX;
/// The largest answer to a batch, in bytes: each record may be refused with a reason.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A writer's description of one of its sinks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkInfo {
    /// The kind of store, as configurations name it.
    pub kind: String,
    /// Whether events can be read back from it.
    pub reads: bool,
    /// A warning: what the store may lose although it has answered.
    pub caution: Option<String>,
    /// The store's mark, as 32 hexadecimal digits, if it can keep one.
    pub mark: Option<String>,
    /// Where and how it stores, by the names of settings: the table, its columns, keys, subjects. They are equal in all writers of an
    /// upstream.
    pub parts: BTreeMap<String, String>,
    /// The largest objects that it accepts, if it stores objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectLimits>,
}

impl SinkInfo {
    /// The store's mark.
    #[must_use]
    pub fn mark(&self) -> Option<Mark> {
        self.mark.as_deref()?.parse().ok()
    }

    /// A hash of the kind and the parts, as 16 hexadecimal digits. Sinks that store alike have the same one.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let text = serde_json::to_vec(&(&self.kind, &self.parts)).unwrap_or_default();
        format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&text))
    }

    /// The first part that differs from `other`: its name, its value here and in `other`. An absent part is `none`.
    #[must_use]
    pub fn difference<'a>(&'a self, other: &'a Self) -> Option<(&'a str, &'a str, &'a str)> {
        if self.kind != other.kind {
            return Some(("kind", &self.kind, &other.kind));
        }
        let of = |info: &'a Self, name: &str| info.parts.get(name).map_or("none", String::as_str);
        let names = self.parts.keys().chain(other.parts.keys());
        let mut parts = names.map(|name| (name.as_str(), of(self, name), of(other, name)));
        parts.find(|(_, here, there)| here != there)
    }
}

/// What the store holds of a lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldAnswer {
    /// The cursor's position; `None` if the store keeps no cursors.
    position: Option<u64>,
    /// The claims on it, as 32 hexadecimal digits each.
    claims: Vec<String>,
}

impl From<Option<Held>> for HeldAnswer {
    fn from(held: Option<Held>) -> Self {
        let (position, claims) = held.map(|held| (held.position, held.claims)).unzip();
        Self { position, claims: texts(&claims.unwrap_or_default()) }
    }
}

impl HeldAnswer {
    /// The parsed answer; `None` if a claim is malformed.
    #[must_use]
    pub fn into_held(self) -> Option<Option<Held>> {
        let claims = claims_of(&self.claims)?;
        Some(self.position.map(|position| Held { position, claims }))
    }
}

/// A request to exchange a claim: [`sink::Sink::claim`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimQuery {
    claim: String,
    /// The claims that it may replace.
    known: Vec<String>,
    /// If it may replace any claim: the position to set the cursor to.
    forced: Option<u64>,
}

impl ClaimQuery {
    /// A request for `claim`.
    #[must_use]
    pub fn new(claim: Claim, takeover: &Takeover) -> Self {
        let (known, forced) = match takeover {
            Takeover::Known(known) => (texts(known), None),
            Takeover::Forced(position) => (Vec::new(), Some(*position)),
        };
        Self { claim: claim.to_string(), known, forced }
    }

    /// The parsed request; `None` if a claim is malformed.
    #[must_use]
    pub fn into_takeover(self) -> Option<(Claim, Takeover)> {
        let known = Takeover::Known(claims_of(&self.known)?.into());
        Some((self.claim.parse().ok()?, self.forced.map_or(known, Takeover::Forced)))
    }
}

fn texts(claims: &[Claim]) -> Vec<String> {
    claims.iter().map(ToString::to_string).collect()
}

fn claims_of(texts: &[String]) -> Option<Vec<Claim>> {
    texts.iter().map(|text| text.parse().ok()).collect()
}

/// A refused record: its index within the batch, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    /// From 0.
    pub index: usize,
    /// The store's words.
    pub reason: String,
}

/// A record to retry: its index within the batch, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Again {
    /// From 0.
    pub index: usize,
    /// The store's words.
    pub reason: String,
    /// Whether the cause is the store, not the record.
    pub of_store: bool,
    /// Whether the cause may be the store or the record. Older writers don't send it.
    #[serde(default)]
    pub unclear: bool,
}

/// The outcome of a batch, or of another call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// [`WriteOutcome::Committed`].
    Stored,
    /// [`WriteOutcome::Rejected`].
    Withheld {
        /// The records that were refused.
        refused: Vec<Why>,
    },
    /// [`WriteOutcome::Partial`].
    Except {
        /// Refused permanently.
        refused: Vec<Why>,
        /// To be retried.
        retry: Vec<Again>,
    },
    /// The writer's sink, or its store, isn't the one that the gateway is bound to: nothing was done.
    Differs {
        /// The description of the writer's sink.
        info: SinkInfo,
    },
    /// [`SinkError`].
    Failed {
        /// Whether the operator must act.
        misconfigured: bool,
        /// The message.
        reason: String,
    },
}

impl From<Result<WriteOutcome, SinkError>> for Outcome {
    fn from(result: Result<WriteOutcome, SinkError>) -> Self {
        let why = |refusal: RejectedRecord| Why { index: refusal.index, reason: refusal.reason.to_string() };
        let refused = |list: Vec<RejectedRecord>| list.into_iter().map(why);
        let again = |retry: Retry| Again {
            index: retry.index,
            reason: retry.reason.to_string(),
            of_store: retry.scope == RetryScope::Store,
            unclear: retry.scope == RetryScope::Unclear,
        };
        let retry = |list: Vec<Retry>| list.into_iter().map(again);
        match result {
            Ok(WriteOutcome::Committed) => Self::Stored,
            Ok(WriteOutcome::Rejected { refused: list }) => Self::Withheld { refused: refused(list).collect() },
            Ok(WriteOutcome::Partial { refused: list, retry: left }) => {
                Self::Except { refused: refused(list).collect(), retry: retry(left).collect() }
            }
            Err(error) => error.into(),
        }
    }
}

impl From<SinkError> for Outcome {
    fn from(error: SinkError) -> Self {
        match error {
            SinkError::Unavailable(reason) => Self::Failed { misconfigured: false, reason: reason.to_string() },
            SinkError::Misconfigured(reason) => Self::Failed { misconfigured: true, reason: reason.to_string() },
            error @ SinkError::OtherStore(_) => Self::Failed { misconfigured: true, reason: error.to_string() },
        }
    }
}

impl Outcome {
    /// The report of a batch of `count` records.
    ///
    /// # Errors
    /// The failure of the writer's sink; also if an index is out of the batch's range.
    pub fn into_write_outcome(self, count: usize) -> Result<WriteOutcome, SinkError> {
        let ascends = |indices: &[usize]| {
            indices.is_sorted_by(|one, other| one < other) && indices.last().is_none_or(|last| *last < count)
        };
        let check = |list: &[Why]| ascends(&list.iter().map(|why| why.index).collect::<Vec<_>>());
        let check_again = |list: &[Again]| ascends(&list.iter().map(|again| again.index).collect::<Vec<_>>());
        let refusals = |list: Vec<Why>| {
            list.into_iter()
                .map(|Why { index, reason }| RejectedRecord { index, reason: shortened(&reason).into() })
                .collect()
        };
        let scope = |again: &Again| match (again.of_store, again.unclear) {
            (true, _) => RetryScope::Store,
            (false, true) => RetryScope::Unclear,
            (false, false) => RetryScope::Record,
        };
        let again =
            |again: Again| Retry { index: again.index, reason: shortened(&again.reason).into(), scope: scope(&again) };
        let retries = |list: Vec<Again>| list.into_iter().map(again).collect();
        match self {
            Self::Stored => Ok(WriteOutcome::Committed),
            Self::Withheld { refused } if check(&refused) => Ok(WriteOutcome::Rejected { refused: refusals(refused) }),
            Self::Except { refused, retry } if check(&refused) && check_again(&retry) => {
                Ok(WriteOutcome::Partial { refused: refusals(refused), retry: retries(retry) })
            }
            Self::Differs { .. } => {
                Err(SinkError::Misconfigured("the writer's sink isn't the one that was used before".into()))
            }
            Self::Withheld { .. } | Self::Except { .. } => {
                Err(SinkError::Unavailable("the writer names records that the batch doesn't have".into()))
            }
            Self::Failed { misconfigured: true, reason } => Err(SinkError::Misconfigured(shortened(&reason).into())),
            Self::Failed { misconfigured: false, reason } => Err(SinkError::Unavailable(shortened(&reason).into())),
        }
    }
}

/// Formats a lane for [`LANE`].
#[must_use]
pub fn lane_text(lane: &Lane) -> String {
    format!("{}/{lane}", lane.origin)
}

/// Parses a lane from [`LANE`].
#[must_use]
pub fn lane_of(text: &str) -> Option<Lane> {
    let mut parts = text.splitn(3, '/');
    let (origin, shard, sink) = (parts.next()?, parts.next()?, parts.next()?);
    let is_name = !sink.is_empty() && sink.len() <= 128 && sink.bytes().all(|byte| byte.is_ascii_graphic());
    is_name.then_some(Lane { origin: origin.parse().ok()?, shard: shard.parse().ok()?, sink: sink.into() })
}

/// Parses the first and last position from [`POSITIONS`].
#[must_use]
pub fn positions_of(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.split_once('-')?;
    let (first, last) = (u64::from_str(first).ok()?, u64::from_str(last).ok()?);
    // An empty batch ends before it begins.
    (first >= 1 && last >= first - 1).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::Origin;
    use sink::Reason;

    #[test]
    fn a_lane_is_read_as_it_is_written() {
        let lane = Lane { origin: Origin([0xab; 16]), shard: 9, sink: "a/b".into() };
        assert_eq!(lane_of(&lane_text(&lane)), Some(lane));
        for wrong in
            ["", "/", "ab/1/x", "zz/1/x", &format!("{}/x/y", "0".repeat(32)), &format!("{}/1/", "0".repeat(32))]
        {
            assert_eq!(lane_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn positions_are_a_run() {
        assert_eq!(positions_of("5-9"), Some((5, 9)));
        assert_eq!(positions_of("5-4"), Some((5, 4)));
        for wrong in ["", "5", "5-", "-5", "0-1", "9-5", "1--2", "18446744073709551616-1"] {
            assert_eq!(positions_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn outcomes_are_the_sinks_own() {
        let reason: Reason = "why".into();
        let reports = [
            Ok(WriteOutcome::Committed),
            Ok(WriteOutcome::Rejected { refused: vec![RejectedRecord { index: 1, reason: reason.clone() }] }),
            Ok(WriteOutcome::Partial {
                refused: Vec::new(),
                retry: vec![
                    Retry { index: 0, reason: reason.clone(), scope: RetryScope::Record },
                    Retry { index: 1, reason: reason.clone(), scope: RetryScope::Unclear },
                ],
            }),
            Err(SinkError::Unavailable(reason.clone())),
            Err(SinkError::Misconfigured(reason.clone())),
        ];
        for report in reports {
            let text = serde_json::to_string(&Outcome::from(report.clone())).unwrap();
            assert_eq!(serde_json::from_str::<Outcome>(&text).unwrap().into_write_outcome(2), report, "{text}");
        }
        let beyond = Outcome::Withheld { refused: vec![Why { index: 2, reason: String::new() }] };
        assert!(beyond.into_write_outcome(2).is_err());
    }
}
