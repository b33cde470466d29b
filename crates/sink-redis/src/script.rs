//! A batch as consecutive scripts of at most a thousand records: each applies the records after the lane's cursor, and
//! sets the cursor.
//!
//! Redis runs a script alone and writes its effects to its log as one piece, but doesn't roll back a script that fails.
//! So a script checks everything first, and rewrites the unchanged cursor to see whether it may write at all. If a
//! record still fails, the script sets the cursor to the last record before it. So the cursor is always right.

use event::Lane;

use super::config::{OwnKeys, RedisConfig, Structure};
use super::error::Failure;
use super::execute::Execute;
use super::fault::fault;
use super::mapping::Row;
use super::protocol::{Answer, Command};
use sink::{Batch, Claim, Fault, Held, RejectedRecord, Takeover, WriteOutcome};

/// Records of one script: the server does nothing else for about two milliseconds.
const RECORDS_MAX: usize = 1_000;
/// Bytes of one script's records, unless one alone has more.
const BYTES_MAX: usize = 1024 * 1024;

const BEGIN: &str = include_str!("begin.lua");
const END: &str = include_str!("end.lua");
const CLAIM: &str = include_str!("claim.lua");

/// The script's parameters of a structure.
struct ScriptParameters {
    lua: &'static str,
    /// The type that the keys must have; empty if there is none, or if each event has a separate key.
    kind: &'static str,
    /// How many entries to keep.
    entries_max: Option<u64>,
    /// Whether revisions must be compared.
    has_revisions: bool,
}

impl ScriptParameters {
    const fn of(structure: &Structure) -> Self {
        let (lua, kind, entries_max) = match structure {
            Structure::Stream { entries_max } => (include_str!("stream.lua"), "stream", *entries_max),
            Structure::List { entries_max } => (include_str!("list.lua"), "list", *entries_max),
            Structure::Set => (include_str!("set.lua"), "set", None),
            Structure::Hash => (concat!(include_str!("by_id.lua"), include_str!("hash.lua")), "hash", None),
            Structure::Latest { .. } => (include_str!("latest.lua"), "hash", None),
            Structure::Strings => (concat!(include_str!("by_id.lua"), include_str!("strings.lua")), "", None),
            Structure::Counter { .. } => (include_str!("counter.lua"), "hash", None),
            Structure::Publish => (include_str!("publish.lua"), "", None),
        };
        let has_revisions = matches!(
            structure,
            Structure::Hash | Structure::Latest { .. } | Structure::Strings | Structure::Counter { .. }
        );
        Self { lua, kind, entries_max, has_revisions }
    }
}

/// A lane's field in the hash of cursors.
pub(super) fn field(lane: &Lane) -> String {
    format!("{}/{lane}", lane.origin)
}

/// The field of the claim on a lane, next to its cursor. The scripts use it too.
pub(super) fn claim_field(lane: &Lane) -> String {
    format!("claim:{}", field(lane))
}

/// The position up to which `lane` is stored, 0 for a lane that was never written, and its claim.
pub(super) async fn read<A: Execute>(server: &mut A, own: &OwnKeys, lane: &Lane) -> Result<Held, Failure> {
    // In this order: if the claim is still this process's own, no other process has moved the cursor. Not in one
    // command, because a user may have only the permissions in docs/guides/stores/redis.md.
    let cursor = read_cursor(server, own, lane).await?;
    Ok(Held::new(cursor, read_claim(server, own, lane).await?))
}

async fn read_cursor<A: Execute>(server: &mut A, own: &OwnKeys, lane: &Lane) -> Result<u64, Failure> {
    read_field(server, own, &field(lane)).await?.map_or(Ok(0), |text| position(&text))
}

/// The claim on `lane`.
pub(super) async fn read_claim<A: Execute>(
    server: &mut A,
    own: &OwnKeys,
    lane: &Lane,
) -> Result<Option<Claim>, Failure> {
    read_field(server, own, &claim_field(lane)).await?.map(|text| claim_of(&text)).transpose()
}

async fn read_field<A: Execute>(server: &mut A, own: &OwnKeys, field: &str) -> Result<Option<String>, Failure> {
    match server.execute(&own.cursors, Command::new(&["HGET", &own.cursors, field])).await? {
        Answer::Nothing => Ok(None),
        answer => answer.text().map(Some).ok_or(INVALID_RESULT),
    }
}

fn claim_of(text: &str) -> Result<Claim, Failure> {
    text.parse().map_err(|_| {
        Failure::Unexpected("a stored claim isn't 32 digits: check whether another program writes Forebay's keys")
    })
}

/// Exchanges the claim next to a cursor, if `takeover` allows it, and returns the position and claim afterwards.
pub(super) async fn claim<A: Execute>(
    server: &mut A,
    own: &OwnKeys,
    lane: &Lane,
    claim: Claim,
    takeover: &Takeover,
) -> Result<Held, Failure> {
    let position = match takeover {
        Takeover::Known(_) => String::new(),
        Takeover::Forced(position) => position.to_string(),
    };
    exchange(server, own, lane, (claim, takeover), &position).await
}

/// The same, and sets the cursor to `new_position` unless it is empty.
pub(super) async fn exchange<A: Execute>(
    server: &mut A,
    own: &OwnKeys,
    lane: &Lane,
    (claim, takeover): (Claim, &Takeover),
    new_position: &str,
) -> Result<Held, Failure> {
    let (force, known) = match takeover {
        Takeover::Known(known) => ("", &known[..]),
        Takeover::Forced(_) => ("force", &[][..]),
    };
    let (lane, claim) = (field(lane), claim.to_string());
    let mut command = Command::new(&["EVAL", CLAIM, "1", &own.cursors, &lane, &claim, force, new_position]);
    known.iter().for_each(|known| command.word(known.to_string()));
    let words = server.execute(&own.cursors, command).await?.texts().ok_or(INVALID_RESULT)?;
    let [cursor, claim] = words.as_slice() else { return Err(INVALID_RESULT) };
    Ok(Held::new(position(cursor)?, Some(claim_of(claim)?)))
}

pub(super) fn position(text: &str) -> Result<u64, Failure> {
    text.parse().map_err(|_| {
        Failure::Unexpected("a stored cursor isn't a number: check whether another program writes Forebay's keys")
    })
}

/// Writes the records at `indices` after their lane's cursor, unless the cursor is less than `stored`, which moves with
/// it. Forebay's own keys, and those of these records, are all on one server and in one slot.
pub(super) async fn write<A: Execute>(
    server: &mut A,
    config: &RedisConfig,
    own: &OwnKeys,
    batch: &Batch,
    indices: &[usize],
    stored: &mut u64,
) -> Result<WriteOutcome, Failure> {
    let (mut rows, mut refused) = (Vec::with_capacity(indices.len()), Vec::new());
    for (index, record) in indices.iter().filter_map(|index| Some((*index, batch.get(*index)?))) {
        match Row::new(config, index, &record) {
            Ok(row) => rows.push(row),
            Err(why) => refused.push(rejection(index, &why)),
        }
    }
    if !refused.is_empty() {
        // Stored records are no longer rejected.
        let cursor = read_cursor(server, own, batch.lane()).await?;
        refused.retain(|rejection| batch.get(rejection.index).is_some_and(|record| record.sequence > cursor));
        if !refused.is_empty() {
            return Ok(WriteOutcome::Rejected { refused });
        }
    }
    let mut rest = rows.as_slice();
    loop {
        let (part, following) = rest.split_at(part(rest));
        // Records without a row belong to the row before them.
        let last = following.first().map_or(batch.last(), |next| next.sequence - 1);
        let command = command(config, own, batch, part, (*stored, last));
        let answer = server.execute(&own.cursors, command).await?;
        let refused = rejections_of(answer, part, stored)?;
        if !refused.is_empty() {
            return Ok(WriteOutcome::Rejected { refused });
        }
        rest = following;
        if rest.is_empty() {
            return Ok(WriteOutcome::Committed);
        }
    }
}

fn rejection(index: usize, why: &str) -> RejectedRecord {
    RejectedRecord { index, reason: format!("{why} (Redis rejects the event)").into() }
}

/// How many of the rows one script has.
fn part(rows: &[Row<'_>]) -> usize {
    let mut bytes = 0;
    let fits = |row: &&Row<'_>| {
        bytes += row.bytes();
        bytes <= BYTES_MAX
    };
    rows.iter().take(RECORDS_MAX).take_while(fits).count().max(usize::from(!rows.is_empty()))
}

/// Parses a script's result for `rows`: the records that the server rejects. `stored` is moved to the cursor.
fn rejections_of(answer: Answer, rows: &[Row<'_>], stored: &mut u64) -> Result<Vec<RejectedRecord>, Failure> {
    let words = answer.texts().ok_or(INVALID_RESULT)?;
    let [outcome, cursor, rest @ ..] = words.as_slice() else { return Err(INVALID_RESULT) };
    let cursor = position(cursor)?;
    let of = |row: &str, why: &str| {
        let row = row.parse().ok().and_then(|row: usize| rows.get(row)).ok_or(INVALID_RESULT)?;
        Ok::<_, Failure>(rejection(row.index, why))
    };
    match (outcome.as_str(), rest) {
        ("stored", []) => {
            *stored = cursor.max(*stored);
            Ok(Vec::new())
        }
        ("lost", []) => Err(Failure::LostTail { position: cursor, stored: *stored }),
        ("claimed", []) => Err(Failure::Claimed),
        ("refused", [_, ..]) => {
            rest.chunks(2).map(|pair| if let [row, why] = pair { of(row, why) } else { Err(INVALID_RESULT) }).collect()
        }
        ("stopped", [row, said]) => {
            *stored = cursor.max(*stored);
            if fault(said) == Fault::Record { Ok(vec![of(row, said)?]) } else { Err(Failure::Server(said.clone())) }
        }
        _ => Err(INVALID_RESULT),
    }
}

pub(super) const INVALID_RESULT: Failure =
    Failure::Unexpected("a script returned an invalid result: check whether another program writes Forebay's keys");

/// A claim as an argument of a script: empty if there is none.
pub(super) fn claim_text(claim: Option<Claim>) -> String {
    claim.map(|claim| claim.to_string()).unwrap_or_default()
}

/// `EVAL`, and not `EVALSHA`: the script is a percent of the data, and a restarted server has it immediately.
fn command(
    config: &RedisConfig,
    own: &OwnKeys,
    batch: &Batch,
    rows: &[Row<'_>],
    (stored, last): (u64, u64),
) -> Command {
    let parameters = ScriptParameters::of(&config.structure);
    let script = [BEGIN, parameters.lua, END].concat();
    let mut keys: Vec<&str> = rows.iter().map(|row| row.key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    // A key that never exists would delay the others while their slot is moving to another node.
    let revisions = if parameters.has_revisions { &own.revisions } else { &own.cursors };
    // Forebay's own two keys are first.
    let mut command = Command::new(&["EVAL", &script, &(keys.len() + 2).to_string(), &own.cursors, revisions]);
    keys.iter().for_each(|key| command.word(key));
    command.word(field(batch.lane()));
    command.word(stored.to_string());
    command.word(last.to_string());
    command.word(parameters.kind);
    command.word(parameters.entries_max.map(|max| max.to_string()).unwrap_or_default());
    command.word(claim_text(batch.claim()));
    for row in rows {
        let key = keys.binary_search(&row.key.as_str()).map_or(0, |at| at + 3);
        command.word(row.sequence.to_string());
        command.word(key.to_string());
        command.word(row.name.as_bytes());
        command.word(&row.order);
        command.word(&row.value);
    }
    command
}
