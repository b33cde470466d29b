//! The query of a story: by id, by position, or by the key that a client chose.

use admin_api::query::pairs;
use event::{EventId, KeyedIds, Position, TypeName};
use gateway::DEFAULT_TYPE;
use text::percent;

/// The path's part instead of an id, for an event that is found by its key.
const BY_KEY: &str = "by-key";

/// The event whose story is requested.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StoryQuery {
    pub(super) target: Target,
    /// The position in the response to its post.
    pub(super) position: Option<Position>,
    pub(super) type_name: Option<TypeName>,
}

/// How the event is named.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    Id(EventId),
    Position,
    Key { key: String, source: String, type_name: TypeName },
}

impl StoryQuery {
    /// Parses the part of the path, and the text after the question mark, or returns their error.
    pub(crate) fn read(event: &str, query: &str) -> Result<Self, String> {
        let (mut key, mut source, mut type_name, mut position) = (None, String::new(), None, None);
        for pair in pairs(query) {
            let (name, value) = pair?;
            match name {
                "key" => key = Some(value),
                "source" => source = value,
                "type" => type_name = Some(TypeName::new(&value).map_err(|error| format!("type={value}: {error}"))?),
                "position" => position = Some(value.parse().map_err(|error| format!("position={value}: {error}"))?),
                _ => return Err(format!("unknown parameter {name}: use position, type, key or source")),
            }
        }
        let event = percent::decode(event).unwrap_or_else(|| event.to_owned());
        let target = match (event.parse(), event.parse(), key) {
            (_, _, Some(key)) if event == BY_KEY => {
                let of_default = || TypeName::new(DEFAULT_TYPE).map_err(|error| error.to_string());
                Target::Key { key, source, type_name: type_name.clone().map_or_else(of_default, Ok)? }
            }
            (_, _, Some(_)) => return Err(format!("key is for /api/events/{BY_KEY}/story: leave it out")),
            (Ok(id), _, None) => Target::Id(id),
            (_, Ok(at), None) => {
                position = Some(at);
                Target::Position
            }
            _ if event == BY_KEY => return Err("the parameter key is missing: add key=KEY".to_owned()),
            _ => return Err(format!("{event} is neither an event id nor a position such as 0:118")),
        };
        if let Target::Key { type_name: of_key, .. } = &target {
            type_name = Some(of_key.clone());
        }
        Ok(Self { target, position, type_name })
    }

    /// The key by which the event is asked for.
    pub(super) fn key(&self) -> Option<&str> {
        match &self.target {
            Target::Key { key, .. } => Some(key),
            Target::Id(_) | Target::Position => None,
        }
    }

    /// The ids that it may have, the likeliest first: a key names a single event, or the first of a batch.
    pub(super) fn ids(&self) -> Vec<EventId> {
        match &self.target {
            Target::Id(id) => vec![*id],
            Target::Position => Vec::new(),
            Target::Key { key, source, type_name } => {
                let ids = KeyedIds::new(source, type_name, key.as_bytes());
                vec![ids.id(0), ids.id(1)]
            }
        }
    }

    /// The ids under which the deduplication window remembers it: its own, and those of batches with the key.
    pub(super) fn remembered_as(&self) -> Vec<EventId> {
        let mut ids = self.ids();
        if let Target::Key { key, source, type_name } = &self.target {
            for name in [Some(type_name), None] {
                let batch = KeyedIds::of_batch(source, name, key.as_bytes());
                ids.extend([batch, batch.in_part()]);
            }
        }
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_names_id_position_or_key() {
        let id = "01a2177a-4d3c-770b-baa2-b33028300118";
        let by_id = StoryQuery::read(id, "position=0:7&type=a").unwrap();
        assert_eq!((by_id.target, by_id.position.unwrap().sequence), (Target::Id(id.parse().unwrap()), 7));
        let by_position = StoryQuery::read("1%3A18", "").unwrap();
        assert_eq!((by_position.ids(), by_position.position.unwrap().to_string()), (Vec::new(), "1:18".to_owned()));
        let by_key = StoryQuery::read("by-key", "key=cart-8812&type=order&source=shop").unwrap();
        assert_eq!((by_key.key(), by_key.type_name.as_ref().unwrap().as_str()), (Some("cart-8812"), "order"));
        assert_eq!((by_key.ids().len(), by_key.remembered_as().len()), (2, 6));
        for (event, query, wanted) in [
            ("by-key", "", "key is missing"),
            (id, "key=a", "by-key"),
            ("x", "", "neither an event id"),
            ("0:0", "", "neither an event id"),
            (id, "position=7", "position=7"),
            (id, "types=a", "unknown parameter types"),
        ] {
            let wrong = StoryQuery::read(event, query).unwrap_err();
            assert!(wrong.contains(wanted), "{event}?{query}: {wrong}");
        }
    }
}
