//! The rows of a page, in an order. The server counts the bytes of payloads before it sends them, and never writes the
//! text of a payload that is far too large. `jsonb` keeps `1e131071` in 12 bytes and writes it with 131,072 digits.

use event::read::{Payload, StoredEvent};
use limits::EVENT_BYTES_MAX;
use tokio_postgres::Row;

use super::super::error::Failure;
use super::super::mapping::{Id, Time};
use super::table::Readable;

/// Bytes of a `jsonb` value in memory. The text of a larger one isn't written: an event of full size has fewer than 7 MiB.
const JSONB_BYTES_MAX: usize = 16 * EVENT_BYTES_MAX;
/// Bytes of a `jsonb` value whose numbers need not be read: each takes 12 bytes, and 31 have fewer digits than the limit.
const JSONB_BYTES_FREE: usize = 31 * 12;
/// Digits of a payload's numbers, counted up to four times too high. The text of a payload with more of them isn't written.
const DIGITS_MAX: usize = 4 * EVENT_BYTES_MAX;
/// Characters of a type's or a source's name. Longer names, which other programs have stored, are cut.
const NAME_CHARACTERS_MAX: usize = 256;

/// The order of rows, as SQL.
#[derive(Clone, Copy)]
pub(super) struct Order<'a> {
    /// A row's place in the order, as text.
    pub(super) place: &'a str,
    /// The order of the table's rows, of which there may be many: an index should have it.
    pub(super) first: &'a str,
    /// The order of the page's rows, which have `place`.
    pub(super) then: &'a str,
}

/// The rows that match `condition`, in order, until the page is full: `$1` rows, of which the bytes before the last are at
/// most `$2`. The server counts too, since otherwise it would send all rows.
pub(super) fn rows(table: &Readable, from: &str, condition: &str, Order { place, first, then }: Order<'_>) -> String {
    let name = |sql: &str| format!("left(coalesce({sql}, ''), {NAME_CHARACTERS_MAX})");
    let (type_name, source) = (name(&table.type_sql()), name(table.source_sql()));
    let sized = if table.form.is_jsonb { jsonb_sized() } else { text_sized() };
    format!(
        "select id, type, source, received_at, text, place::text as shown, size from \
         (select q.*, sum(octet_length(coalesce(text, ''))) over (order by {then}) - octet_length(coalesce(text, '')) as before from \
         (select r.id, r.type, r.source, r.received_at, r.place, s.size, \
         case when s.size <= {EVENT_BYTES_MAX} then s.text end as text from \
         (select id, {type_name} as type, {source} as source, received_at, payload, {place} as place from {from} \
         where ({condition}) and payload is not null and received_at is not null \
         order by {first} limit $1::bigint) r cross join lateral ({sized}) s) q) c where before <= $2::bigint order by {then}"
    )
}

/// A payload's text, and its size in bytes. The server knows the size of a `text` without reading it.
fn text_sized() -> String {
    format!(
        "select octet_length(r.payload::text)::bigint as size, \
         case when octet_length(r.payload::text) <= {EVENT_BYTES_MAX} then r.payload::text end as text"
    )
}

/// The same for `jsonb`. The text isn't written unless the numbers have few digits. Then the size is estimated.
///
/// `offset 0` keeps the server from computing a part twice, or before the part that guards it. The numbers are gathered in an array, since
/// a path's results as rows take a time that grows with the square of their number.
fn jsonb_sized() -> String {
    let magnitudes = [10_u32, 18, 60, 300, 1_000, 4_000, 16_000, 65_000];
    let cases: Vec<String> =
        magnitudes.iter().map(|digits| format!("when abs(n) < 1e{digits} then {}", digits + 2)).collect();
    let digits = format!(
        "select coalesce(sum(scale(n) + case when abs(n) < 10 then 2 when abs(n) < 10000 then 5 {} else 131074 end), 0)::bigint from \
         (select v::numeric as n from jsonb_array_elements(jsonb_path_query_array(r.payload, \
         'strict $.** ? (@.type() == \"number\")')) v offset 0) n",
        cases.join(" ")
    );
    format!(
        "select coalesce(octet_length(t.text)::bigint, w.bytes + g.digits) as size, t.text from \
         (select pg_column_size(r.payload #> '{{}}')::bigint as bytes offset 0) w cross join lateral \
         (select case when w.bytes between {JSONB_BYTES_FREE} and {JSONB_BYTES_MAX} then ({digits}) else 0 end as digits offset 0) g cross join lateral \
         (select case when w.bytes <= {JSONB_BYTES_MAX} and g.digits <= {DIGITS_MAX} then r.payload::text end as text offset 0) t"
    )
}

/// The first two parameters of a statement by [`rows`]. One row more than the limit shows whether there is a next page.
pub(super) fn limits(count: usize, bytes_max: usize) -> [i64; 2] {
    [count.saturating_add(1), bytes_max].map(|limit| i64::try_from(limit).unwrap_or(i64::MAX))
}

/// A row's place, as [`Order::place`] shows it, and its event.
pub(super) fn event_in(row: &Row) -> Result<(&str, StoredEvent), Failure> {
    let size: i64 = row.try_get(6)?;
    let text = row.try_get::<_, Option<String>>(4)?.map(String::into_bytes);
    let event = StoredEvent {
        id: row.try_get::<_, Id>(0)?.0,
        type_name: row.try_get(1)?,
        source: row.try_get(2)?,
        received_at: row.try_get::<_, Time>(3)?.0,
        payload: Payload::sized(text, u64::try_from(size).unwrap_or_default()),
    };
    Ok((row.try_get(5)?, event))
}
