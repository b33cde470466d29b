//! What a gateway and a writer say to each other: paths, header fields, and answers as JSON. `docs/writer-protocol.md` is its page.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use event::Lane;
use serde::{Deserialize, Serialize};

use crate::{Claim, Held, Mark, Refusal, Report, Retry, RetryScope, SinkError, Takeover};

/// Every path begins with it; behind it stands the sink's name.
pub const PATH: &str = "/ingest/data";
/// The type of a body that is a [frame](super::frame).
pub const CONTENT_TYPE: &str = "application/vnd.forebay.batch";
/// The lane: origin, shard and sink's name in the gateway's configuration, as in `0f…c1/0/warehouse`.
pub const LANE: &str = "forebay-lane";
/// The first and the last position that a batch accounts for, as in `101-200`.
pub const POSITIONS: &str = "forebay-positions";
/// The claim of the process that sends a batch, as 32 hexadecimal digits.
pub const CLAIM: &str = "forebay-claim";
/// Up to where the lane knows its events to be stored: [`crate::Batch::floor`].
pub const FLOOR: &str = "forebay-floor";
/// The highest position that was ever handed to the sink before: [`crate::Batch::again`].
pub const AGAIN: &str = "forebay-again";
/// The mark of the store that the gateway's sink is bound to, as 32 hexadecimal digits.
pub const MARK: &str = "forebay-mark";
/// The [fingerprint](SinkInfo::fingerprint) of the sink that the gateway is bound to.
pub const LAYOUT: &str = "forebay-layout";
/// A writer that ends names it: its gateways use another one.
pub const DRAINING: &str = "forebay-draining";
/// How often a writer says that it still works, while its store does: a newline before the answer.
pub const HEARTBEAT: Duration = Duration::from_secs(1);
/// A gateway doesn't use a connection that was idle for so long.
pub const IDLE_MAX: Duration = crate::http_client::IDLE_MAX;
/// Bytes of an answer to a batch that a gateway reads: each record may be refused with a reason.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What a writer says of one of its sinks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkInfo {
    /// The kind of store, as configurations name it.
    pub kind: String,
    /// Whether events can be read back from it.
    pub reads: bool,
    /// What the store may lose although it has answered, in words.
    pub caution: Option<String>,
    /// The store's mark, as 32 hexadecimal digits, if it has a place for one.
    pub mark: Option<String>,
    /// What is stored where and how, by the names of settings: the table, its columns, keys, subjects. Writers of one upstream have the
    /// same ones.
    pub parts: BTreeMap<String, String>,
}

impl SinkInfo {
    /// The store's mark.
    #[must_use]
    pub fn mark(&self) -> Option<Mark> {
        self.mark.as_deref()?.parse().ok()
    }

    /// The kind and the parts as 16 hexadecimal digits: those of two sinks that store alike are the same.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let text = serde_json::to_vec(&(&self.kind, &self.parts)).unwrap_or_default();
        format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&text))
    }

    /// The first part in which `other` differs: its name, its value here and there. An absent part is `none`.
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
    /// The cursor's position; none where the store keeps no cursors.
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
    /// What the sink holds; nothing where a claim isn't one.
    #[must_use]
    pub fn into_held(self) -> Option<Option<Held>> {
        let claims = claims_of(&self.claims)?;
        Some(self.position.map(|position| Held { position, claims }))
    }
}

/// Asks for a claim to be exchanged: [`crate::Sink::claim`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimQuery {
    claim: String,
    /// The claims that it may take the place of.
    known: Vec<String>,
    /// Where it takes the place of any: the position that the cursor is set to.
    forced: Option<u64>,
}

impl ClaimQuery {
    pub(super) fn new(claim: Claim, takeover: &Takeover) -> Self {
        let (known, forced) = match takeover {
            Takeover::Known(known) => (texts(known), None),
            Takeover::Forced(position) => (Vec::new(), Some(*position)),
        };
        Self { claim: claim.to_string(), known, forced }
    }

    /// What is asked for; nothing where a claim isn't one.
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

/// A record by its index within its batch, and why it isn't stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    /// From 0.
    pub index: usize,
    /// The store's words.
    pub reason: String,
}

/// A record by its index within its batch, and why it is to be sent again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Again {
    /// From 0.
    pub index: usize,
    /// The store's words.
    pub reason: String,
    /// Whether that is because of the store, not of the record.
    pub of_store: bool,
}

/// What became of a batch, or of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// [`Report::Stored`].
    Stored,
    /// [`Report::Withheld`].
    Withheld {
        /// The records that were refused.
        refused: Vec<Why>,
    },
    /// [`Report::Except`].
    Except {
        /// Refused for good.
        refused: Vec<Why>,
        /// To be sent again.
        retry: Vec<Again>,
    },
    /// The writer's sink, or its store, isn't the one that the gateway is bound to: nothing was done.
    Differs {
        /// What it is.
        info: SinkInfo,
    },
    /// [`SinkError`].
    Failed {
        /// Whether the operator must act.
        misconfigured: bool,
        /// In words.
        reason: String,
    },
}

impl From<Result<Report, SinkError>> for Outcome {
    fn from(result: Result<Report, SinkError>) -> Self {
        let why = |refusal: Refusal| Why { index: refusal.index, reason: refusal.reason.to_string() };
        let refused = |list: Vec<Refusal>| list.into_iter().map(why);
        let again = |retry: Retry| Again {
            index: retry.index,
            reason: retry.reason.to_string(),
            of_store: retry.scope == RetryScope::Store,
        };
        let retry = |list: Vec<Retry>| list.into_iter().map(again);
        match result {
            Ok(Report::Stored) => Self::Stored,
            Ok(Report::Withheld { refused: list }) => Self::Withheld { refused: refused(list).collect() },
            Ok(Report::Except { refused: list, retry: left }) => {
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
    /// The report that a batch of `count` records came to.
    ///
    /// # Errors
    /// What the writer's sink failed by; also where an index isn't one of the batch's.
    pub fn into_report(self, count: usize) -> Result<Report, SinkError> {
        let ascends = |indices: &[usize]| {
            indices.is_sorted_by(|one, other| one < other) && indices.last().is_none_or(|last| *last < count)
        };
        let check = |list: &[Why]| ascends(&list.iter().map(|why| why.index).collect::<Vec<_>>());
        let check_again = |list: &[Again]| ascends(&list.iter().map(|again| again.index).collect::<Vec<_>>());
        let refusals = |list: Vec<Why>| {
            list.into_iter().map(|Why { index, reason }| Refusal { index, reason: reason.into() }).collect()
        };
        let scope = |of_store| if of_store { RetryScope::Store } else { RetryScope::Record };
        let again =
            |again: Again| Retry { index: again.index, reason: again.reason.into(), scope: scope(again.of_store) };
        let retries = |list: Vec<Again>| list.into_iter().map(again).collect();
        match self {
            Self::Stored => Ok(Report::Stored),
            Self::Withheld { refused } if check(&refused) => Ok(Report::Withheld { refused: refusals(refused) }),
            Self::Except { refused, retry } if check(&refused) && check_again(&retry) => {
                Ok(Report::Except { refused: refusals(refused), retry: retries(retry) })
            }
            Self::Differs { .. } => {
                Err(SinkError::Misconfigured("the writer's sink isn't the one that was used before".into()))
            }
            Self::Withheld { .. } | Self::Except { .. } => {
                Err(SinkError::Unavailable("the writer names records that the batch doesn't have".into()))
            }
            Self::Failed { misconfigured: true, reason } => Err(SinkError::Misconfigured(reason.into())),
            Self::Failed { misconfigured: false, reason } => Err(SinkError::Unavailable(reason.into())),
        }
    }
}

/// What the writer's sink is, if an answer says that it isn't the one that the gateway is bound to.
pub(super) fn differing(answer: &[u8]) -> Option<SinkInfo> {
    if !answer.trim_ascii_start().starts_with(br#"{"differs""#) {
        return None;
    }
    match serde_json::from_slice(answer) {
        Ok(Outcome::Differs { info }) => Some(info),
        _ => None,
    }
}

/// A lane as [`LANE`] has it.
#[must_use]
pub fn lane_text(lane: &Lane) -> String {
    format!("{}/{lane}", lane.origin)
}

/// The lane that a text of [`LANE`] stands for.
#[must_use]
pub fn lane_of(text: &str) -> Option<Lane> {
    let mut parts = text.splitn(3, '/');
    let (origin, shard, sink) = (parts.next()?, parts.next()?, parts.next()?);
    let is_name = !sink.is_empty() && sink.len() <= 128 && sink.bytes().all(|byte| byte.is_ascii_graphic());
    is_name.then_some(Lane { origin: origin.parse().ok()?, shard: shard.parse().ok()?, sink: sink.into() })
}

/// The first and last position that a text of [`POSITIONS`] stands for.
#[must_use]
pub fn positions_of(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.split_once('-')?;
    let (first, last) = (u64::from_str(first).ok()?, u64::from_str(last).ok()?);
    // A batch may be empty, and then ends before it begins.
    (first >= 1 && last >= first - 1).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reason;
    use event::Origin;

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
            Ok(Report::Stored),
            Ok(Report::Withheld { refused: vec![Refusal { index: 1, reason: reason.clone() }] }),
            Ok(Report::Except {
                refused: Vec::new(),
                retry: vec![Retry { index: 0, reason: reason.clone(), scope: RetryScope::Record }],
            }),
            Err(SinkError::Unavailable(reason.clone())),
            Err(SinkError::Misconfigured(reason.clone())),
        ];
        for report in reports {
            let text = serde_json::to_string(&Outcome::from(report.clone())).unwrap();
            assert_eq!(serde_json::from_str::<Outcome>(&text).unwrap().into_report(2), report, "{text}");
        }
        let beyond = Outcome::Withheld { refused: vec![Why { index: 2, reason: String::new() }] };
        assert!(beyond.into_report(2).is_err());
    }
}
