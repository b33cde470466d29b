//! A batch as scripts of at most a thousand records, one after the other: each applies what lies beyond the lane's cursor,
//! and sets it.
//!
//! Redis runs a script alone and writes its effects to its log as one piece, but takes nothing back where a script fails
//! on the way. So a script looks at everything first, writes the cursor as it is to see whether it may write at all, and where
//! one record fails all the same it sets the cursor behind the last that didn't: whatever happens, the cursor tells the truth.

use event::Lane;

use super::ask::Ask;
use super::config::{OwnKeys, RedisConfig, Structure};
use super::error::Failure;
use super::mapping::Row;
use super::protocol::{Answer, Command};
use sink::{Batch, Claim, Record, RejectedRecord, Takeover, WriteOutcome};

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
            Structure::Hash => (include_str!("hash.lua"), "hash", None),
            Structure::Latest { .. } => (include_str!("latest.lua"), "hash", None),
            Structure::Strings => (include_str!("strings.lua"), "", None),
            Structure::Counter { .. } => (include_str!("counter.lua"), "hash", None),
            Structure::Publish => (include_str!("publish.lua"), "", None),
        };
        let has_revisions = matches!(
            structure,
            Structure::Hash | Structure::Latest { .. } | Structure::Strings | Structure::Counter { .. }
        );
        Self { lua, kind, entries_max, has_revisions }
    }

    /// Structures in which an event is known by its id.
    const fn common(structure: &Structure) -> &'static str {
        match structure {
            Structure::Hash | Structure::Strings => include_str!("by_id.lua"),
            _ => "",
        }
    }
}

/// A lane as it stands in the hash of cursors.
pub(super) fn field(lane: &Lane) -> String {
    format!("{}/{lane}", lane.origin)
}

/// Up to where `lane` is stored; 0 for a lane that was never written.
pub(super) async fn read_cursor<A: Ask>(server: &mut A, own: &OwnKeys, lane: &Lane) -> Result<u64, Failure> {
    let words = Command::new(&[b"HGET", own.cursors.as_bytes(), field(lane).as_bytes()]);
    match server.ask(&own.cursors, words).await? {
        Answer::Nothing => Ok(0),
        Answer::Text(text) => position(&text),
        _ => Err(Failure::Odd("a cursor is something else than a number")),
    }
}

/// The field that holds the claim on a lane, beside its cursor. The scripts know it too.
pub(super) fn claim_field(lane: &Lane) -> String {
    format!("claim:{}", field(lane))
}

/// Up to where `lane` is stored, 0 for a lane that was never written, and the claim on it.
pub(super) async fn read<A: Ask>(server: &mut A, own: &OwnKeys, lane: &Lane) -> Result<(u64, Option<Claim>), Failure> {
    // In this order: where the claim is still this process's own, nobody has moved the cursor meanwhile. Not by one command: a user may
    // have no right to others than those that the manual names.
    let cursor = read_cursor(server, own, lane).await?;
    Ok((cursor, read_claim(server, own, lane).await?))
}

/// The claim on `lane`.
pub(super) async fn read_claim<A: Ask>(server: &mut A, own: &OwnKeys, lane: &Lane) -> Result<Option<Claim>, Failure> {
    let words = Command::new(&[b"HGET", own.cursors.as_bytes(), claim_field(lane).as_bytes()]);
    match server.ask(&own.cursors, words).await? {
        Answer::Nothing => Ok(None),
        Answer::Text(text) => claim_of(&text).map(Some),
        _ => Err(ODD),
    }
}

fn claim_of(text: &str) -> Result<Claim, Failure> {
    text.parse().map_err(|_| Failure::Odd("a claim is something else than 32 digits"))
}

/// Exchanges the claim that stands beside a cursor, if `takeover` allows it, and gives what is there then.
pub(super) async fn claim<A: Ask>(
    server: &mut A,
    own: &OwnKeys,
    lane: &Lane,
    claim: Claim,
    takeover: &Takeover,
) -> Result<(u64, Option<Claim>), Failure> {
    let (is_forced, position, known) = match takeover {
        Takeover::Known(known) => ("", String::new(), &known[..]),
        Takeover::Forced(position) => ("force", position.to_string(), &[][..]),
    };
    let mut words = vec![field(lane), claim.to_string(), is_forced.to_owned(), position];
    words.extend(known.iter().map(ToString::to_string));
    exchange(server, own, &words).await
}

/// The same by force, and the cursor stays where it is.
pub(super) async fn force_claim<A: Ask>(
    server: &mut A,
    own: &OwnKeys,
    lane: &Lane,
    claim: Claim,
) -> Result<(u64, Option<Claim>), Failure> {
    exchange(server, own, &[field(lane), claim.to_string(), "force".to_owned(), String::new()]).await
}

async fn exchange<A: Ask>(
    server: &mut A,
    own: &OwnKeys,
    arguments: &[String],
) -> Result<(u64, Option<Claim>), Failure> {
    let mut command = Command::of(4 + arguments.len(), CLAIM.len() + 1_024 + 48 * arguments.len());
    for word in ["EVAL", CLAIM, "1", &own.cursors] {
        command.word(word.as_bytes());
    }
    arguments.iter().for_each(|argument| command.word(argument.as_bytes()));
    let mut words = words(server.ask(&own.cursors, command).await?)?;
    let (cursor, claim) = (words.next().ok_or(ODD)??, words.next().ok_or(ODD)??);
    Ok((position(&cursor)?, Some(claim_of(&claim)?)))
}

pub(super) fn position(text: &str) -> Result<u64, Failure> {
    text.parse().map_err(|_| Failure::Odd("a cursor is something else than a number"))
}

/// Writes what of the records at `indices` lies beyond their lane's cursor, unless the cursor is less than `stored`, which is moved
/// with it. Forebay's own keys, and those of these records, are all on one server and in one slot.
pub(super) async fn write<A: Ask>(
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
            Err(why) => refused.push(refusal(index, &record, &why)),
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
        let answer = server.ask(&own.cursors, command).await?;
        let refused = taken(answer, batch, part, stored)?;
        if !refused.is_empty() {
            return Ok(WriteOutcome::Rejected { refused });
        }
        rest = behind;
        if rest.is_empty() {
            return Ok(WriteOutcome::Committed);
        }
    }
}

fn refusal(index: usize, record: &Record<'_>, why: &str) -> RejectedRecord {
    RejectedRecord { index, reason: format!("Redis doesn't take event {}: {why}", record.id).into() }
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

/// What a script that says no more than that has come to, and where the cursor is.
pub(super) fn outcome(answer: Answer) -> Result<(String, u64), Failure> {
    let mut words = words(answer)?;
    let mut next = || words.next().unwrap_or(Err(ODD));
    Ok((next()?, position(&next()?)?))
}

fn words(answer: Answer) -> Result<impl Iterator<Item = Result<String, Failure>>, Failure> {
    let Answer::List(words) = answer else { return Err(ODD) };
    Ok(words.into_iter().map(|word| match word {
        Answer::Text(text) => Ok(text),
        _ => Err(ODD),
    }))
}

/// What a script over `rows` was answered with: which records the server refuses. `stored` is moved to where the cursor is.
fn taken(answer: Answer, batch: &Batch, rows: &[Row<'_>], stored: &mut u64) -> Result<Vec<RejectedRecord>, Failure> {
    let mut words = words(answer)?;
    let mut next = || words.next().unwrap_or(Err(ODD));
    let (outcome, cursor) = (next()?, position(&next()?)?);
    let of = |row: &str, why: &str| {
        let row = row.parse().ok().and_then(|row: usize| rows.get(row)).ok_or(ODD)?;
        let record = batch.get(row.index).ok_or(ODD)?;
        Ok::<_, Failure>(refusal(row.index, &record, why))
    };
    match outcome.as_str() {
        "stored" => {
            *stored = cursor.max(*stored);
            Ok(Vec::new())
        }
        "lost" => Err(Failure::LostTail { position: cursor, stored: *stored }),
        "claimed" => Err(Failure::Claimed),
        "refused" => {
            let mut refused = Vec::new();
            while let Ok(row) = next() {
                refused.push(of(&row, &next()?)?);
            }
            if refused.is_empty() { Err(ODD) } else { Ok(refused) }
        }
        "stopped" => {
            *stored = cursor.max(*stored);
            let (row, said) = (next()?, next()?);
            if is_of_a_record(&said) { Ok(vec![of(&row, &said)?]) } else { Err(Failure::Server(said)) }
        }
        _ => Err(ODD),
    }
}

pub(super) const ODD: Failure = Failure::Odd(
    "a script was answered with something that makes no sense: is another program writing Forebay's keys?",
);

/// Whether an error is about what is in one record, so that its neighbours may pass.
fn is_of_a_record(said: &str) -> bool {
    ["overflow", "is not an integer", "string exceeds maximum"].iter().any(|words| said.contains(words))
}

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
    let script = [BEGIN, Way::common(&config.structure), way.lua, END].concat();
    let mut keys: Vec<&str> = rows.iter().map(|row| row.key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    let head = [
        field(batch.lane()),
        stored.to_string(),
        last.to_string(),
        way.kind.to_owned(),
        way.entries_max.map(|max| max.to_string()).unwrap_or_default(),
        claim_text(batch.claim()),
    ];
    // EVAL, the script, how many keys; Forebay's own two before the others.
    let words = 3 + 2 + keys.len() + head.len() + 5 * rows.len();
    let mut command = Command::of(words, script.len() + 1_024 + rows.iter().map(|row| row.bytes() + 48).sum::<usize>());
    command.word(b"EVAL");
    command.word(script.as_bytes());
    command.word((keys.len() + 2).to_string().as_bytes());
    command.word(own.cursors.as_bytes());
    // A key that never is would keep the others waiting for it as long as their slot is on its way to another node.
    command.word(if way.has_revisions { &own.revisions } else { &own.cursors }.as_bytes());
    keys.iter().for_each(|key| command.word(key.as_bytes()));
    head.iter().for_each(|word| command.word(word.as_bytes()));
    for row in rows {
        let key = keys.binary_search(&row.key.as_str()).map_or(0, |at| at + 3);
        command.word(row.sequence.to_string().as_bytes());
        command.word(key.to_string().as_bytes());
        command.word(row.name.as_bytes());
        command.word(row.order.as_bytes());
        command.word(&row.value);
    }
    command
}
