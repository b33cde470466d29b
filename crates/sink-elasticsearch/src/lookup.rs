//! Lookups of events by their ids, over all indices that may have them: an id doesn't say which index that is.

use event::EventId;
use event::read::{Found, Lookup, StoredEvent};
use limits::READ_BYTES_MAX;
use serde_json::json;

use super::error::Failure;
use super::fields::Fields;
use super::index::IndexPattern;
use super::search::{Order, Search};
use super::server::Server;

/// Looks up events. Of several documents with an id, the one that was received first counts, as in a page.
pub(super) async fn get(
    server: &Server,
    index: &IndexPattern,
    fields: &Fields,
    lookup: &Lookup,
) -> Result<Found, Failure> {
    // In the order of the documents.
    let mut ids = lookup.ids.clone();
    ids.sort_unstable();
    // Callers whose lookups are put together have more room than one response should need.
    let bytes_max = lookup.bytes_max.min(READ_BYTES_MAX);
    let mut search = Search::new(server, (index, None), fields, Order::Id, bytes_max);
    let texts: Vec<String> = ids.iter().map(EventId::to_string).collect();
    search.only("terms", &fields.id, json!(texts));
    let (mut events, mut bytes, mut place): (Vec<StoredEvent>, _, _) = (Vec::new(), 0, None);
    loop {
        // Fewer documents than that are all of them.
        let documents = search.step(place.as_ref(), ids.len() + 1).await?;
        let (hits, is_last) = documents.hits()?;
        for hit in hits {
            let event = documents.event_in(&hit);
            if let Some(event) = event.filter(|event| events.last().is_none_or(|last| last.id != event.id)) {
                bytes += event.bytes();
                if bytes > bytes_max && !events.is_empty() {
                    let left = ids.split_off(ids.partition_point(|id| *id < event.id));
                    return Ok(Found { events, left });
                }
                events.push(event);
            }
            place = Some(hit.sort);
        }
        if is_last {
            return Ok(Found { events, left: Vec::new() });
        }
    }
}
