//! The rows of a page, in an order.

use event::limits::EVENT_BYTES_MAX;
use event::read::{Query, StoredEvent};
use tokio_postgres::Row;

use super::super::error::Failure;
use super::super::mapping::{Id, Time};

/// In which order rows are read, as SQL.
#[derive(Clone, Copy)]
pub(super) struct Order<'a> {
    /// A row's place in it, shown as text.
    pub(super) place: &'a str,
    /// What the rows of the table are ordered by, of which there may be many: an index should have it.
    pub(super) first: &'a str,
    /// What those of the page are ordered by, which have `place`.
    pub(super) then: &'a str,
}

/// The rows that fit `condition`, in order, as far as a page has room for them: the server counts too, or it would send
/// them all.
pub(super) fn rows(table: &str, condition: &str, Order { place, first, then }: Order<'_>, query: &Query) -> String {
    // One more than there is room for tells whether there is a next page.
    let (count, bytes) = (query.limit.saturating_add(1), query.bytes_max);
    format!(
        "select id, type, source, received_at, payload, place::text as shown from \
         (select c.*, sum(octet_length(payload)) over (order by {then}) - octet_length(payload) as before from \
         (select id, coalesce(type, '') as type, coalesce(source, '') as source, received_at, payload::text as payload, \
         {place} as place from {table} where ({condition}) and payload is not null and received_at is not null \
         order by {first} limit {count}) c) c where before <= {bytes} order by {then}"
    )
}

/// Where a row stands, as [`Order::place`] shows it, and its event.
pub(super) fn event_in(row: &Row) -> Result<(&str, StoredEvent), Failure> {
    let event = StoredEvent {
        id: row.try_get::<_, Id>(0)?.0,
        type_name: row.try_get(1)?,
        source: row.try_get(2)?,
        received_at: row.try_get::<_, Time>(3)?.0,
        payload: row.try_get::<_, String>(4)?.into_bytes(),
    };
    Ok((row.try_get(5)?, event))
}

/// Others may have put into the table what is too large for an event.
pub(super) const fn is_none_of_ours(event: &StoredEvent) -> bool {
    event.payload.len() > EVENT_BYTES_MAX
}
