//! Lookups of events by their ids, in one request. A writer of a release that doesn't know them answers with the page of
//! the first id, so it is asked again for the others.

use std::collections::HashSet;

use event::read::{Found, Lookup, ReadError};
use event::{EventId, TypeName};

use super::{EventJson, PageJson, QueryJson, odd, stored};

impl From<&Lookup> for QueryJson {
    fn from(lookup: &Lookup) -> Self {
        let ids: Vec<String> = lookup.ids.iter().map(EventId::to_string).collect();
        Self {
            ids: ids.first().map(|first| [first.clone(), first.clone()]),
            type_name: None,
            since: None,
            until: None,
            newest_first: false,
            after: None,
            limit: 1,
            bytes_max: lookup.bytes_max,
            only_type: lookup.only_type.as_ref().map(|name| name.as_str().to_owned()),
            lookup: Some(ids),
        }
    }
}

impl QueryJson {
    pub(super) fn into_lookup(self) -> Option<Lookup> {
        let ids: Vec<EventId> = self.lookup?.iter().map(|id| id.parse().ok()).collect::<Option<_>>()?;
        let mut seen = HashSet::new();
        let ids: Vec<EventId> = ids.into_iter().filter(|id| seen.insert(*id)).collect();
        let only_type = self.only_type.as_deref().map(TypeName::new).transpose().ok()?;
        (!ids.is_empty()).then_some(Lookup { ids, bytes_max: self.bytes_max, only_type })
    }
}

impl PageJson {
    /// What a lookup gave.
    #[must_use]
    pub fn found(found: Result<Found, ReadError>) -> Self {
        match found {
            Ok(Found { events, left }) => Self::Found {
                events: events.into_iter().map(EventJson::from).collect(),
                left: left.iter().map(EventId::to_string).collect(),
            },
            Err(error) => error.into(),
        }
    }

    /// The events of this lookup.
    ///
    /// # Errors
    /// The store's failure; also if the answer is malformed, or not one to this lookup.
    pub fn into_found(self, lookup: &Lookup) -> Result<Found, ReadError> {
        let Found { events, left } = match self {
            Self::Found { events, left } => {
                let left: Option<Vec<EventId>> = left.iter().map(|id| id.parse().ok()).collect();
                Found { events: stored(events)?, left: left.ok_or_else(odd)? }
            }
            // An older writer has looked up the first one.
            Self::Page { events, .. } => {
                Found { events: stored(events)?, left: lookup.ids.iter().skip(1).copied().collect() }
            }
            other => return Err(other.into_error()),
        };
        // Otherwise a caller could ask without end for those that are left.
        let asked: HashSet<&EventId> = lookup.ids.iter().collect();
        let answers = events.iter().map(|event| &event.id).chain(&left);
        if left.len() >= lookup.ids.len() || !answers.into_iter().all(|id| asked.contains(id)) {
            return Err(odd());
        }
        Ok(Found { events, left })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails loudly")]
mod tests {
    use event::read::{Payload, Query, StoredEvent, Wanted};

    use super::super::ReadRequest;
    use super::*;

    /// A gateway's request.
    const REQUEST: &str = concat!(
        r#"{"ids":["01010101-0101-0101-0101-010101010101","01010101-0101-0101-0101-010101010101"],"#,
        r#""type":null,"since":null,"until":null,"newest_first":false,"after":null,"limit":1,"bytes_max":4096,"#,
        r#""only_type":"order","#,
        r#""lookup":["01010101-0101-0101-0101-010101010101","02020202-0202-0202-0202-020202020202"]}"#
    );
    /// A writer's answer.
    const ANSWER: &str = concat!(
        r#"{"found":{"events":[{"id":"02020202-0202-0202-0202-020202020202","type":"order","source":"shop","#,
        r#""received_at":5,"payload":"{\"a\":1}"}],"left":["01010101-0101-0101-0101-010101010101"]}}"#
    );
    /// The answer of a writer that doesn't know lookups.
    const OLDER_ANSWER: &str = concat!(
        r#"{"page":{"events":[{"id":"01010101-0101-0101-0101-010101010101","type":"order","source":"shop","#,
        r#""received_at":5,"payload":"{\"a\":1}"}],"next":null,"newest_first":false}}"#
    );

    fn lookup() -> Lookup {
        let ids = vec![EventId([1; 16]), EventId([2; 16])];
        Lookup { ids, bytes_max: 4096, only_type: TypeName::new("order").ok() }
    }

    fn event(id: u8) -> StoredEvent {
        let (type_name, source) = ("order".to_owned(), "shop".to_owned());
        let payload = Payload::Whole(br#"{"a":1}"#.to_vec());
        StoredEvent { id: EventId([id; 16]), type_name, source, received_at: 5, payload }
    }

    fn found(answer: &str) -> Result<Found, ReadError> {
        serde_json::from_str::<PageJson>(answer).unwrap().into_found(&lookup())
    }

    #[test]
    fn request_and_answer_keep_their_form() {
        assert_eq!(serde_json::to_string(&QueryJson::from(&lookup())).unwrap(), REQUEST);
        let request: QueryJson = serde_json::from_str(REQUEST).unwrap();
        assert_eq!(request.into_request(), Some(ReadRequest::Lookup(lookup())));
        let answer = Found { events: vec![event(2)], left: vec![EventId([1; 16])] };
        assert_eq!(serde_json::to_string(&PageJson::found(Ok(answer.clone()))).unwrap(), ANSWER);
        assert_eq!(found(ANSWER), Ok(answer));
        assert_eq!(PageJson::found(Err(ReadError::Busy)).into_found(&lookup()), Err(ReadError::Busy));
    }

    #[test]
    fn older_writer_looks_up_the_first_id() {
        // It knows all members but the last one.
        let (known, _) = REQUEST.split_once(r#","lookup""#).unwrap();
        let request: QueryJson = serde_json::from_str(&format!("{known}}}")).unwrap();
        let first = EventId([1; 16]);
        let wanted = Wanted::Ids { first, last: first };
        let query = Query { wanted, after: None, limit: 1, bytes_max: 4096, only_type: lookup().only_type };
        assert_eq!(request.into_request(), Some(ReadRequest::Page(query)));
        let left = vec![EventId([2; 16])];
        assert_eq!(found(OLDER_ANSWER), Ok(Found { events: vec![event(1)], left: left.clone() }));
        let none = r#"{"page":{"events":[],"next":null}}"#;
        assert_eq!(found(none), Ok(Found { events: vec![], left }), "the first one isn't stored");
    }

    #[test]
    fn ids_are_looked_up_once() {
        let twice = Lookup { ids: [lookup().ids, lookup().ids].concat(), ..lookup() };
        assert_eq!(QueryJson::from(&twice).into_request(), Some(ReadRequest::Lookup(lookup())));
        let none = Lookup { ids: vec![], ..lookup() };
        assert_eq!(QueryJson::from(&none).into_request(), None);
        let wrong: QueryJson = serde_json::from_str(&REQUEST.replace("02020202-", "02020202.")).unwrap();
        assert_eq!(wrong.into_request(), None);
    }

    #[test]
    fn answer_to_another_lookup_is_malformed() {
        let [first, second] = [1, 2].map(|id| EventId([id; 16]).to_string());
        let other = EventId([3; 16]);
        for left in [vec![first, second], vec![other.to_string()], vec!["x".to_owned()]] {
            let answer = PageJson::Found { events: vec![], left };
            assert_eq!(answer.into_found(&lookup()), Err(odd()));
        }
        let answer = PageJson::found(Ok(Found { events: vec![event(3)], left: vec![] }));
        assert_eq!(answer.into_found(&lookup()), Err(odd()));
    }
}
