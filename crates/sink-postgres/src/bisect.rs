//! Writes a batch that can't be written as a whole. It compares the records with stored rows, and splits the batch in
//! halves if the server rejects it, until the rejected rows are found.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use event::EventId;
use tokio_postgres::types::ToSql;

use super::columns::{Content, Field};
use super::config::RowConflictPolicy;
use super::conflict;
use super::error::Failure;
use super::kind::ColumnType;
use super::mapping::{Array, Id, put_value};
use super::session::Talk;
use super::table::Table;
use sink::{Batch, Fault, Reason, Record, RejectedRecord, Verdict, Write};

/// A record with its index within the batch.
type Indexed<'a> = (usize, Record<'a>);

/// Makes deferred constraints and triggers report errors with their rows.
const IMMEDIATE: &str = "set constraints all immediate";

/// Why a record is rejected if its id exists with other values.
const OTHER_EVENT: &str =
    "its id exists with another payload, type or source: set `conflict` to keep or replace such rows";

/// The records that keep a batch from being written as a whole.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Rejected for what they are: they can't be rows, or their ids exist.
    pub(super) refused: Vec<RejectedRecord>,
    /// Rejected by the server, each alone, with and after its neighbours.
    pub(super) suspects: Vec<Suspect>,
}

/// A record that the server rejects alone.
#[derive(Debug)]
pub(super) struct Suspect {
    pub(super) index: usize,
    failure: Failure,
}

impl Suspect {
    pub(super) fn message(&self) -> String {
        self.failure.message()
    }
}

impl Findings {
    pub(super) const fn is_empty(&self) -> bool {
        self.refused.is_empty() && self.suspects.is_empty()
    }

    /// All of them as rejections.
    pub(super) fn into_rejections(self) -> Vec<RejectedRecord> {
        let mut refused = self.refused;
        refused.extend(self.suspects.iter().map(|suspect| rejection(suspect.index, &suspect.message())));
        refused.sort_by_key(|rejection| rejection.index);
        refused
    }
}

/// Writes the records that can be written in the open transaction, and finds the others.
///
/// A rejected record is tried once more after all others are written. If the server's code leaves open whether the row
/// or the table is at fault, the record is a suspect only if the server accepts one of its neighbours. `probes` records
/// are tried one by one before a batch that fails as a whole is halved.
///
/// # Errors
/// [`Failure::NoRowPasses`] if nothing distinguishes a row's fault from the table's.
pub(super) async fn write(
    talk: &Talk,
    table: &Table,
    records: Vec<Indexed<'_>>,
    probes: usize,
) -> Result<Findings, Failure> {
    // An error that the commit would report must come while it can be assigned to one record.
    talk.execute(IMMEDIATE).await?;
    let sql = Sql::new(table);
    let tried = records.len();
    let mut search = Search { talk, sql: &sql, table, added: 0, found: Findings::default() };
    let (mut new, mut results) = (Vec::new(), Vec::new());
    for (index, record) in records {
        match check(&table.fields, &record) {
            Err(why) => search.found.refused.push(rejection(index, &why)),
            Ok(()) if record.write == Write::Insert => new.push((index, record)),
            Ok(()) => results.push((index, record)),
        }
    }
    // In the order of ids, so two lanes with the same ids never deadlock.
    new.sort_by_key(|(index, record)| (record.id, *index));
    let results = newest(results);
    search.find(&new, Step::Insert, probes).await?;
    search.find(&results, Step::Replace, probes).await?;
    search.retry_suspects(&new, &results).await?;
    let Search { added, mut found, .. } = search;
    let is_rejected = |suspect: &Suspect| suspect.failure.fault().verdict(added > 0) == Verdict::Rejected;
    let (certain, open) = found.suspects.into_iter().partition(is_rejected);
    found.suspects = certain;
    match Vec::into_iter(open).next().filter(|_| found.is_empty()) {
        Some(suspect) => Err(suspect.failure.of_all(tried)),
        None => Ok(found),
    }
}

/// Tries each suspect alone in the open transaction, and rolls it back. Returns those that the server rejects as
/// before.
pub(super) async fn rejected_again(
    talk: &Talk,
    table: &Table,
    batch: &Batch,
    suspects: Vec<Suspect>,
) -> Result<Vec<Suspect>, Failure> {
    talk.execute(IMMEDIATE).await?;
    let sql = Sql::new(table);
    let search = Search { talk, sql: &sql, table, added: 0, found: Findings::default() };
    let mut still_rejected = Vec::with_capacity(suspects.len());
    for suspect in suspects {
        let Some(record) = batch.get(suspect.index) else { continue };
        if search.probe((suspect.index, record)).await?.is_some_and(|failure| failure.is_like(&suspect.failure)) {
            still_rejected.push(suspect);
        }
    }
    Ok(still_rejected)
}

/// Whether the record can be encoded as a row.
fn check(fields: &[Field], record: &Record<'_>) -> Result<(), String> {
    let mut row = Vec::new();
    fields.iter().try_for_each(|field| {
        row.clear();
        put_value(field, record, &mut row)
    })
}

fn rejection(index: usize, why: &str) -> RejectedRecord {
    let reason: Reason = format!("{why} (the table rejects the event)").into();
    RejectedRecord { index, reason }
}

/// The highest revision of each id, the first of equal ones; the others have no effect.
fn newest(mut results: Vec<Indexed<'_>>) -> Vec<Indexed<'_>> {
    results.sort_by_key(|(index, record)| (record.id, std::cmp::Reverse(revision(record)), *index));
    results.dedup_by_key(|(_, record)| record.id);
    results
}

const fn revision(record: &Record<'_>) -> u64 {
    match record.write {
        Write::Insert => 0,
        Write::Upsert(revision) => revision,
    }
}

/// How records are written.
#[derive(Clone, Copy)]
enum Step {
    /// As new ones.
    Insert,
    /// Instead of older revisions.
    Replace,
}

impl Step {
    const fn of(record: &Record<'_>) -> Self {
        match record.write {
            Write::Insert => Self::Insert,
            Write::Upsert(_) => Self::Replace,
        }
    }
}

/// The search for the records of one transaction that can't be written.
struct Search<'a> {
    talk: &'a Talk,
    sql: &'a Sql,
    table: &'a Table,
    /// How many rows the server has accepted.
    added: usize,
    found: Findings,
}

impl Search<'_> {
    /// Writes `records` except those that the server rejects, which are found by halving.
    async fn find(&mut self, records: &[Indexed<'_>], step: Step, probes: usize) -> Result<(), Failure> {
        let mut parts = vec![records];
        while let Some(part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            let failure = match self.attempt(part, step).await? {
                Ok(done) => {
                    self.talk.execute("release savepoint part").await?;
                    self.added += done.added;
                    self.found.refused.extend(done.refused);
                    continue;
                }
                Err(failure) => failure,
            };
            if let [(index, _)] = part {
                self.found.suspects.push(Suspect { index: *index, failure });
                continue;
            }
            if part.len() == records.len() && self.added == 0 && failure.fault() == Fault::Unclear {
                self.accepts_any(part, probes).await?;
            }
            let (first, second) = part.split_at(part.len() / 2);
            parts.extend([second, first]);
        }
        Ok(())
    }

    /// Tries the suspects once more, after their neighbours: a row may refer to one of these.
    async fn retry_suspects(&mut self, new: &[Indexed<'_>], results: &[Indexed<'_>]) -> Result<(), Failure> {
        let before = std::mem::take(&mut self.found.suspects);
        if before.is_empty() || self.added == 0 {
            self.found.suspects = before;
            return Ok(());
        }
        let before: HashMap<usize, Failure> =
            before.into_iter().map(|suspect| (suspect.index, suspect.failure)).collect();
        for (records, step) in [(new, Step::Insert), (results, Step::Replace)] {
            let still_rejected: Vec<Indexed<'_>> =
                records.iter().filter(|(index, _)| before.contains_key(index)).copied().collect();
            self.find(&still_rejected, step, 0).await?;
        }
        let differs = |suspect: &Suspect| !before.get(&suspect.index).is_some_and(|one| one.is_like(&suspect.failure));
        match self.found.suspects.iter().position(differs) {
            Some(at) => Err(Failure::Inconsistent(self.found.suspects.swap_remove(at).failure.message())),
            None => Ok(()),
        }
    }

    /// Checks whether the server accepts one of several records of `part`, which it rejects as a whole.
    ///
    /// # Errors
    /// [`Failure::NoRowPasses`] if it rejects each of them, and none for a value of the row.
    async fn accepts_any(&self, part: &[Indexed<'_>], probes: usize) -> Result<(), Failure> {
        // Different ones with each attempt: the records that are tried may be at fault themselves.
        let from = usize::try_from(RandomState::new().hash_one(()) >> 32).unwrap_or_default();
        let probes = probes.min(part.len());
        for probe in 0..probes {
            let record = part[(from + probe * part.len() / probes) % part.len()];
            match self.probe(record).await? {
                None => return Ok(()),
                Some(other) if other.fault() == Fault::Record => return Ok(()),
                Some(other) if probe + 1 == probes => return Err(other.of_all(probes)),
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Why the server rejects one record; `None` if it doesn't. The row is rolled back.
    async fn probe(&self, record: Indexed<'_>) -> Result<Option<Failure>, Failure> {
        let done = self.attempt(&[record], Step::of(&record.1)).await?;
        if done.is_ok() {
            self.talk.execute("rollback to savepoint part; release savepoint part").await?;
        }
        Ok(done.err())
    }

    /// Writes records after a savepoint, which is kept if they were written.
    ///
    /// # Errors
    /// Errors that aren't a record's fault. The others are the value.
    async fn attempt(&self, part: &[Indexed<'_>], step: Step) -> Result<Result<Done, Failure>, Failure> {
        let Self { talk, sql, table, .. } = self;
        talk.execute("savepoint part").await?;
        let done = match step {
            Step::Insert => insert(talk, sql, &table.fields, part, &sql.by_rule).await,
            Step::Replace => replace(talk, sql, &table.fields, part).await,
        };
        match done {
            Ok(done) => Ok(Ok(done)),
            // The row isn't at fault if its partition is missing: one was created or removed during the write.
            Err(failure) if table.partitioned.is_some() && failure.is_partition_mismatch() => {
                Err(Failure::PartitionsChanged)
            }
            Err(failure) if failure.fault() == Fault::Store => Err(failure),
            Err(failure) => {
                talk.execute("rollback to savepoint part; release savepoint part").await?;
                Ok(Err(failure))
            }
        }
    }
}

/// The outcome of records that the server accepts.
#[derive(Default)]
struct Done {
    /// How many rows were added or replaced.
    added: usize,
    refused: Vec<RejectedRecord>,
}

/// The statements that compare records with stored rows.
struct Sql {
    /// Adds events, by the table's conflict rule.
    by_rule: Insert,
    /// Adds first revisions, to which no rule applies.
    first: Insert,
    compare: String,
    replace: String,
    advance: String,
}

/// A statement that adds rows.
struct Insert {
    sql: String,
    /// Whether a record that differs from the stored row with its id is rejected.
    rejects_others: bool,
}

impl Sql {
    fn new(table: &Table) -> Self {
        let quoted: Vec<String> = table.fields.iter().map(Field::quoted).collect();
        let (columns, to) = (quoted.join(", "), &table.quoted);
        let arrays: Vec<String> = table
            .fields
            .iter()
            .enumerate()
            .map(|(at, field)| format!("${}::{}[]", at + 1, field.kind.name()))
            .collect();
        let rows = format!("unnest({}) with ordinality as n ({columns}, forebay_n)", arrays.join(", "));
        // The time of receipt doesn't identify an event: a duplicate arrives later.
        let compared = table.fields.iter().filter(|field| !matches!(field.content, Content::Id | Content::ReceivedAt));
        let same: Vec<String> =
            compared.map(|field| format!("{} is not distinct from {}", stored(field), as_stored(field))).collect();
        let rejects_others = table.conflict == RowConflictPolicy::Reject;
        Self {
            by_rule: Insert { sql: conflict::insert(table, &columns, &rows), rejects_others },
            first: Insert { sql: conflict::insert_new(table, &columns, &rows), rejects_others: true },
            compare: format!(
                "select n.forebay_n, t.id is null, coalesce({}, true) from {rows} left join {to} t on {} order by n.forebay_n",
                if same.is_empty() { "true".to_owned() } else { same.join(" and ") },
                table.key_clause()
            ),
            replace: replacement(table, &columns, &rows),
            advance: format!(
                "insert into {0} as r (\"table\", id, revision) \
                 select '{1}', id, revision from unnest($1::uuid[], $2::bigint[]) as n (id, revision) order by id \
                 on conflict (\"table\", id) do update set revision = excluded.revision \
                 where r.revision < excluded.revision returning id, xmax = 0",
                table.revisions, table.name
            ),
        }
    }
}

/// Replaces existing rows with the new values, and adds missing rows. In a partitioned table a result's row may have
/// another time.
fn replacement(table: &Table, columns: &str, rows: &str) -> String {
    let to = &table.quoted;
    let others = table.fields.iter().filter(|field| field.content != Content::Id);
    if table.partitioned.is_some() {
        return format!(
            "with n as (select {columns} from {rows}), \
             u as (update {to} t set {} from n where t.id = n.id returning t.id) \
             insert into {to} ({columns}) select {columns} from n where id not in (select id from u) order by id",
            table.replaced(others, "n")
        );
    }
    format!(
        "insert into {to} ({columns}) select {columns} from {rows} order by id, forebay_n on conflict (id) do update set {}",
        table.replaced(others, "excluded")
    )
}

/// A stored value in a comparable form: `json` has no equality.
fn stored(field: &Field) -> String {
    format!("t.{}{}", field.quoted(), if field.kind == ColumnType::Json { "::text" } else { "" })
}

/// A new value in a form comparable with a stored one: a column may round, as `numeric(10,2)` does.
fn as_stored(field: &Field) -> String {
    let cast = if field.kind == ColumnType::Json { "text" } else { &field.declared };
    format!("n.{}::{cast}", field.quoted())
}

/// The columns of the records, each as one parameter.
fn arrays(fields: &[Field], records: &[Indexed<'_>]) -> Vec<Array> {
    let column = |field: &Field| {
        let mut values = Vec::new();
        for (_, record) in records {
            // Each was encoded before, so there is no error.
            let _ = put_value(field, record, &mut values);
        }
        Array::new(field.kind.oid(), records.len(), &values)
    };
    fields.iter().map(column).collect()
}

fn parameters(arrays: &[Array]) -> Vec<&(dyn ToSql + Sync)> {
    arrays.iter().map(|array| array as &(dyn ToSql + Sync)).collect()
}

/// Adds the records whose ids are new, and compares the others with the stored rows.
async fn insert(
    talk: &Talk,
    sql: &Sql,
    fields: &[Field],
    records: &[Indexed<'_>],
    insert: &Insert,
) -> Result<Done, Failure> {
    let values = arrays(fields, records);
    let rows = talk.wait(talk.client.query(&insert.sql, &parameters(&values))).await?;
    let mut added: HashSet<EventId> =
        rows.iter().map(|row| Ok(row.try_get::<_, Id>(0)?.0)).collect::<Result<_, tokio_postgres::Error>>()?;
    // Of several records with one id the first was added.
    let known: Vec<Indexed<'_>> = records.iter().filter(|(_, record)| !added.remove(&record.id)).copied().collect();
    let refused =
        if known.is_empty() { Vec::new() } else { compare(talk, sql, fields, &known, insert.rejects_others).await? };
    Ok(Done { added: rows.len(), refused })
}

/// Distinguishes a duplicate, which is stored already, from another event with the same id.
async fn compare(
    talk: &Talk,
    sql: &Sql,
    fields: &[Field],
    records: &[Indexed<'_>],
    rejects_others: bool,
) -> Result<Vec<RejectedRecord>, Failure> {
    let values = arrays(fields, records);
    let rows = talk.wait(talk.client.query(&sql.compare, &parameters(&values))).await?;
    let mut refused = Vec::new();
    for row in rows {
        let (number, is_missing, is_same): (i64, bool, bool) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let at = usize::try_from(number - 1).ok().and_then(|at| records.get(at));
        let Some((index, _)) = at else { return Err(Failure::Unexpected("the server returned an unknown row number")) };
        if is_missing {
            refused.push(rejection(
                *index,
                "a trigger discarded the row: change the trigger, then replay the dead letter",
            ));
        } else if rejects_others && !is_same {
            refused.push(rejection(*index, OTHER_EVENT));
        }
    }
    Ok(refused)
}

/// Replaces older revisions with results. An id's first revision is inserted, so an event is never replaced by a
/// result.
async fn replace(talk: &Talk, sql: &Sql, fields: &[Field], records: &[Indexed<'_>]) -> Result<Done, Failure> {
    let ids = Array::of_ids(records.iter().map(|(_, record)| record.id));
    // No result has so many revisions that the sign matters.
    let revisions: Vec<i64> =
        records.iter().map(|(_, record)| i64::try_from(revision(record)).unwrap_or(i64::MAX)).collect();
    let rows = talk.wait(talk.client.query(&sql.advance, &[&ids, &revisions])).await?;
    let (mut first, mut later) = (HashSet::new(), HashSet::new());
    for row in rows {
        let id = row.try_get::<_, Id>(0)?.0;
        if row.try_get(1)? {
            first.insert(id)
        } else {
            later.insert(id)
        };
    }
    let of = |ids: &HashSet<EventId>| {
        records.iter().filter(|(_, record)| ids.contains(&record.id)).copied().collect::<Vec<_>>()
    };
    let (first, later) = (of(&first), of(&later));
    if !later.is_empty() {
        let values = arrays(fields, &later);
        talk.wait(talk.client.execute(&sql.replace, &parameters(&values))).await?;
    }
    let done = if first.is_empty() { Done::default() } else { insert(talk, sql, fields, &first, &sql.first).await? };
    Ok(Done { added: done.added + later.len(), ..done })
}
