//! `GET /events`: a page of events, of a key or by type and time.

use std::sync::Arc;

use event::Position;
use event::read::{Bookmark, Page, Query, ReadError, ReadOrder, StoredEvent};
use limits::{READ_EVENTS_DEFAULT, READ_EVENTS_MAX};

use super::choice::Choice;
use super::lookup::{SHARD, of_store, pending, with_room};
use super::parameters::Parameters;
use super::{dead_letter, response};
use crate::admission::{ClientBucket, ReadPermit};
use crate::event_types::TypeRegistry;
use crate::lookups::EVENT_ROOM;
use crate::problem::Refused;
use crate::shard::ShardContext;
use http1::Response;

const PARAMETERS: [&str; 8] = ["key", "type", "since", "until", "order", "limit", "cursor", SHARD];

/// Bytes that most events take at most.
const USUAL_EVENT_ROOM: usize = 16 * 1024;

/// A request for a page of events.
pub(crate) struct PageRequest {
    choice: Choice,
    limit: usize,
    after: Option<Bookmark>,
}

impl PageRequest {
    pub(super) fn of(types: &TypeRegistry, query: Option<&str>, source: &str) -> Result<Self, Refused> {
        let parameters = Parameters::read(query, &PARAMETERS)?;
        let limit = parameters.with("limit", |text| limit(text, READ_EVENTS_MAX))?.unwrap_or(READ_EVENTS_DEFAULT);
        let mut choice = Choice::of(types, &parameters, source, ReadOrder::OldestFirst, &[])?;
        let after = parameters.text("cursor").map(|text| choice.resume(text)).transpose()?;
        Ok(Self { choice, limit, after })
    }

    pub(super) async fn respond(&self, shard: &ShardContext, client: ClientBucket) -> Result<Response, Refused> {
        let positions = self.positions(shard);
        let pending = self.pending(shard, &positions);
        let (page, permit) = self.read(shard, client).await?;
        let page = match page {
            Ok(page) => page,
            Err(_) if !pending.is_empty() => Page::default(),
            Err(error) => return Err(of_store(&error)),
        };
        if page.events.is_empty() && !pending.is_empty() {
            return Ok(response::pending_key(&pending));
        }
        let next = page.next.as_ref().map(|bookmark| self.choice.cursor(bookmark));
        let dead = dead_letter::of_requests(shard, positions).await;
        let body = response::page(page.events, response::rest(next.as_deref(), &dead)).await?;
        Ok(with_room(response::ok(body), permit))
    }

    /// Reads the page, with memory for it. A page of usual events takes less than one of large events, so more are read at a time. A page
    /// of large events is read again.
    async fn read(
        &self,
        shard: &ShardContext,
        client: ClientBucket,
    ) -> Result<(Result<Page, ReadError>, ReadPermit), Refused> {
        let Choice { wanted, reader, .. } = &self.choice;
        let most = shard.shared.read_budget.page_bytes().min(self.limit.saturating_mul(EVENT_ROOM));
        let mut bytes_max = most.min(EVENT_ROOM.max(self.limit.saturating_mul(USUAL_EVENT_ROOM)));
        loop {
            let permit = shard.read_permit(bytes_max, client).await?;
            let (wanted, after) = (wanted.clone(), self.after.clone());
            let page = reader.read(Query { wanted, after, limit: self.limit, bytes_max, only_type: None }).await;
            if bytes_max == most || !page.as_ref().is_ok_and(|page| self.is_cut(page, bytes_max)) {
                return Ok((page, permit));
            }
            bytes_max = most;
        }
    }

    /// Whether a page probably ends before an event that had no room.
    fn is_cut(&self, page: &Page, bytes_max: usize) -> bool {
        let bytes: usize = page.events.iter().map(StoredEvent::bytes).sum();
        page.next.is_some() && page.events.len() < self.limit && bytes > bytes_max / 2
    }

    /// The positions of the requests with the key, if they are remembered. Only the first page reports them.
    fn positions(&self, shard: &ShardContext) -> Vec<Position> {
        let Some(key) = self.choice.key.filter(|_| self.after.is_none()) else { return Vec::new() };
        key.into_iter().filter_map(|id| shard.log.position_of(id)).collect()
    }

    /// The sink that doesn't have the events of the key yet, if so.
    fn pending(&self, shard: &ShardContext, positions: &[Position]) -> Vec<Arc<str>> {
        let reader = std::slice::from_ref(&self.choice.reader);
        positions.iter().flat_map(|position| pending(shard, reader, *position)).take(1).collect()
    }
}

/// Parses the number of events of a page, at most `most`.
pub(super) fn limit(text: &str, most: usize) -> Result<usize, String> {
    let wanted = || format!("expected a number from 1 to {most}");
    let number = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let limit = number.and_then(|text| text.parse().ok()).filter(|limit| (1..=most).contains(limit));
    limit.ok_or_else(wanted)
}
