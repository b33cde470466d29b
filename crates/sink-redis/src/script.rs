//! A batch as scripts of at most a thousand records, one after the other: each applies what lies beyond the lane's cursor,
//! and sets it.
//!
//! Redis runs a script alone and writes its effects to its log as one piece, but takes nothing back where a script fails
//! on the way. So a script looks at everything first, writes the cursor as it is to see whether it may write at all, and where
//! one record fails all the same it sets the cursor behind the last that didn't: whatever happens, the cursor tells the truth.

use event::Lane;

use super::config::{OwnKeys, RedisConfig, Structure};
use super::error::Failure;
use super::execute::Execute;
use super::fault::fault;
use super::mapping::Row;
use super::protocol::{Answer, Command};
use sink::{Batch, Claim, Fault, Held, RejectedRecord, Takeover, WriteOutcome};

/// Records of one script: the server does nothing else for some two milliseconds.
const RECORDS_MAX: usize = 1_000;
/// Bytes of one script's records, unless one alone has more.
const BYTES_MAX: usize = 1024 * 1024;

const BEGIN: &str = include_str!("begin.lua");
const END: &str = include_str!("end.lua");
const CLAIM: &str = include_str!("claim.lua");

/// What a structure needs of the script.
struct Way {
    lua: &'static str,
    /// What must stand under the keys; none where there is nothing, or where each event has a key of its own.
    kind: &'static str,
    /// How many entries are kept.
    entries_max: Option<u64>,
    /// Whether it must be known which of two is the newer.
    has_revisions: bool,
}

impl Way {
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

/// A lane as it stands in the hash of cursors.
pub(super) fn field(lane: &Lane) -> String {
    format!("{}/{lane}", lane.origin)
}

/// The field that holds the claim on a lane, beside its cursor. The scripts know it too.
pub(super) fn claim_field(lane: &Lane) -> String {
    format!("claim:{}", field(lane))
}

/// Up to where `lane` is stored, 0 for a lane that was never written, and the claim on it.
pub(super) async fn read<A: Execute>(server: &mut A, own: &OwnKeys, lane: &Lane) -> Result<Held, Failure> {
    // In this order: where the claim is still this process's own, nobody has moved the cursor meanwhile. Not by one command: a user may
    // have no right to others than those that the manual names.
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
        answer => answer.text().map(Some).ok_or(ODD),
    }
}

fn claim_of(text: &str) -> Result<Claim, Failure> {
    text.parse().map_err(|_| Failure::Odd("a claim is something else than 32 digits"))
}

/// Exchanges the claim that stands beside a cursor, if `takeover` allows it, and gives what is there then.
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

/// The same, and the cursor is set to `new_position` if that is one.
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
    let words = server.execute(&own.cursors, command).await?.texts().ok_or(ODD)?;
    let [cursor, claim] = words.as_slice() else { return Err(ODD) };
    Ok(Held::new(position(cursor)?, Some(claim_of(claim)?)))
}

pub(super) fn position(text: &str) -> Result<u64, Failure> {
    text.parse().map_err(|_| Failure::Odd("a cursor is something else than a number"))
}

/// Writes what of the records at `indices` lies beyond their lane's cursor, unless the cursor is less than `stored`, which is moved
/// with it. Forebay's own keys, and those of these records, are all on one server and in one slot.
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
            Err(why) => refused.push(refusal(index, &why)),
        }
    }
    if !refused.is_empty() {
        // What is stored is refused no more.
        let cursor = read_cursor(server, own, batch.lane()).await?;
        refused.retain(|refusal| batch.get(refusal.index).is_some_and(|record| record.sequence > cursor));
        if !refused.is_empty() {
            return Ok(WriteOutcome::Rejected { refused });
        }
    }
    let mut rest = rows.as_slice();
    loop {
        let (part, behind) = rest.split_at(part(rest));
        // What needs nothing from the store belongs to what comes before it.
        let last = behind.first().map_or(batch.last(), |next| next.sequence - 1);
        let command = command(config, own, batch, part, (*stored, last));
        let answer = server.execute(&own.cursors, command).await?;
        let refused = taken(answer, part, stored)?;
        if !refused.is_empty() {
            return Ok(WriteOutcome::Rejected { refused });
        }
        rest = behind;
        if rest.is_empty() {
            return Ok(WriteOutcome::Committed);
        }
    }
}

fn refusal(index: usize, why: &str) -> RejectedRecord {
    RejectedRecord { index, reason: format!("{why} (Redis doesn't take the event)").into() }
}

/// How many of the rows are one script.
fn part(rows: &[Row<'_>]) -> usize {
    let mut bytes = 0;
    let fits = |row: &&Row<'_>| {
        bytes += row.bytes();
        bytes <= BYTES_MAX
    };
    rows.iter().take(RECORDS_MAX).take_while(fits).count().max(usize::from(!rows.is_empty()))
}

/// What a script over `rows` was answered with: which records the server refuses. `stored` is moved to where the cursor is.
fn taken(answer: Answer, rows: &[Row<'_>], stored: &mut u64) -> Result<Vec<RejectedRecord>, Failure> {
    let words = answer.texts().ok_or(ODD)?;
    let [outcome, cursor, rest @ ..] = words.as_slice() else { return Err(ODD) };
    let cursor = position(cursor)?;
    let of = |row: &str, why: &str| {
        let row = row.parse().ok().and_then(|row: usize| rows.get(row)).ok_or(ODD)?;
        Ok::<_, Failure>(refusal(row.index, why))
    };
    match (outcome.as_str(), rest) {
        ("stored", []) => {
            *stored = cursor.max(*stored);
            Ok(Vec::new())
        }
        ("lost", []) => Err(Failure::LostTail { position: cursor, stored: *stored }),
        ("claimed", []) => Err(Failure::Claimed),
        ("refused", [_, ..]) => {
            rest.chunks(2).map(|pair| if let [row, why] = pair { of(row, why) } else { Err(ODD) }).collect()
        }
        ("stopped", [row, said]) => {
            *stored = cursor.max(*stored);
            if fault(said) == Fault::Record { Ok(vec![of(row, said)?]) } else { Err(Failure::Server(said.clone())) }
        }
        _ => Err(ODD),
    }
}

pub(super) const ODD: Failure = Failure::Odd(
    "a script was answered with something that makes no sense: is another program writing Forebay's keys?",
);

/// A claim as an argument of a script: nothing where there is none.
pub(super) fn claim_text(claim: Option<Claim>) -> String {
    claim.map(|claim| claim.to_string()).unwrap_or_default()
}

/// `EVAL`, and not `EVALSHA`: the script is a percent of what is sent with it, and a server that was restarted has it at once.
fn command(
    config: &RedisConfig,
    own: &OwnKeys,
    batch: &Batch,
    rows: &[Row<'_>],
    (stored, last): (u64, u64),
) -> Command {
    let way = Way::of(&config.structure);
    let script = [BEGIN, way.lua, END].concat();
    let mut keys: Vec<&str> = rows.iter().map(|row| row.key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    // A key that never is would keep the others waiting for it as long as their slot is on its way to another node.
    let revisions = if way.has_revisions { &own.revisions } else { &own.cursors };
    // Forebay's own two keys before the others.
    let mut command = Command::new(&["EVAL", &script, &(keys.len() + 2).to_string(), &own.cursors, revisions]);
    keys.iter().for_each(|key| command.word(key));
    command.word(field(batch.lane()));
    command.word(stored.to_string());
    command.word(last.to_string());
    command.word(way.kind);
    command.word(way.entries_max.map(|max| max.to_string()).unwrap_or_default());
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
