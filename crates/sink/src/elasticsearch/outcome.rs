//! What a `_bulk` request came to, document by document. A status of 200 says nothing of them.

use serde::Deserialize;

use super::failure::Failure;
use crate::Reason;
use crate::http_client::shortened;

/// Errors with status 400 that speak of the store and not of the document: it may take the same document later.
const OF_THE_STORE: [&str; 4] =
    ["index_closed_exception", "validation_exception", "invalid_index_name_exception", "cluster_block_exception"];
/// What such errors say where their type is one that documents have too.
const WORDS_OF_THE_STORE: [&str; 4] = [
    "op_type of create are allowed in data streams",
    "no write index is defined",
    "pipeline with id",
    "this action would add",
];

/// What became of one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is there.
    Stored,
    /// There is a document under its id, in this index.
    Taken {
        /// The index: of a data stream the one behind it.
        index: String,
    },
    /// The store never takes it.
    Refused(Reason),
    /// The store has too much to do, or a part of it isn't there.
    Overloaded(Reason),
    /// The store doesn't take it as long as it is as it is.
    NotYet(Reason),
}

#[derive(Deserialize)]
struct Answer {
    items: Vec<Item>,
}

/// One of them is there, by what was asked for.
#[derive(Deserialize)]
struct Item {
    create: Option<Done>,
    index: Option<Done>,
    update: Option<Done>,
}

#[derive(Deserialize)]
struct Done {
    #[serde(default, rename = "_index")]
    index: String,
    status: u16,
    error: Option<StoreError>,
}

/// An error as the store describes it.
#[derive(Debug, Deserialize)]
pub(super) struct StoreError {
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    reason: Option<String>,
    caused_by: Option<Box<StoreError>>,
}

impl StoreError {
    /// The store's words, the causes behind.
    pub(super) fn words(&self) -> String {
        let mut words = format!("{}: {}", self.kind, self.reason.as_deref().unwrap_or_default());
        if let Some(cause) = &self.caused_by {
            words = format!("{words}; caused by {}", cause.words());
        }
        shortened(&words)
    }

    fn is_of_the_store(&self) -> bool {
        let reason = self.reason.as_deref().unwrap_or_default();
        OF_THE_STORE.contains(&self.kind.as_str()) || WORDS_OF_THE_STORE.iter().any(|words| reason.contains(words))
    }
}

/// The outcomes in an answer to `count` actions, in their order.
pub(super) fn outcomes(answer: &[u8], count: usize) -> Result<Vec<Outcome>, Failure> {
    let answer: Answer = serde_json::from_slice(answer)
        .map_err(|error| Failure::Odd(format!("its answer to _bulk can't be read: {error}")))?;
    if answer.items.len() != count {
        return Err(Failure::Odd(format!("it answered {count} actions with {} outcomes", answer.items.len())));
    }
    answer.items.into_iter().map(outcome).collect()
}

/// What a conflict of versions means.
enum WhenTaken {
    /// There is a document: perhaps this one.
    Compare,
    /// A newer revision is there, or this one.
    Newer,
    /// Somebody else changed it at the same time, again and again.
    Again,
}

fn outcome(item: Item) -> Result<Outcome, Failure> {
    let (when_taken, done) = match (item.create, item.index, item.update) {
        (Some(done), None, None) => (WhenTaken::Compare, done),
        (None, Some(done), None) => (WhenTaken::Newer, done),
        (None, None, Some(done)) => (WhenTaken::Again, done),
        _ => return Err(Failure::Odd("its answer to _bulk has something that wasn't asked for".to_owned())),
    };
    let words = || -> Reason {
        let words = done.error.as_ref().map(StoreError::words);
        let words = words.unwrap_or_else(|| "without a word of why".to_owned());
        format!("{} ({})", words, done.status).into()
    };
    Ok(match done.status {
        200..=299 => Outcome::Stored,
        409 => match when_taken {
            WhenTaken::Compare => Outcome::Taken { index: done.index },
            WhenTaken::Newer => Outcome::Stored,
            WhenTaken::Again => Outcome::Overloaded(words()),
        },
        429 | 502 | 503 | 504 => Outcome::Overloaded(words()),
        400 | 413 | 422 if !done.error.as_ref().is_some_and(StoreError::is_of_the_store) => Outcome::Refused(words()),
        _ => Outcome::NotYet(words()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(item: &str) -> Outcome {
        let answer = format!(r#"{{"errors": true, "items": [{item}]}}"#);
        outcomes(answer.as_bytes(), 1).unwrap().remove(0)
    }

    fn failed(status: u16, kind: &str, reason: &str) -> Outcome {
        of(&format!(
            r#"{{"create": {{"_index": "i", "status": {status}, "error": {{"type": "{kind}", "reason": "{reason}",
               "caused_by": {{"type": "deeper", "reason": null}}}}}}}}"#
        ))
    }

    #[test]
    fn each_status_has_its_outcome() {
        assert_eq!(of(r#"{"create": {"status": 201}}"#), Outcome::Stored);
        assert_eq!(of(r#"{"index": {"status": 200}}"#), Outcome::Stored);
        assert_eq!(of(r#"{"create": {"_index": "b", "status": 409}}"#), Outcome::Taken { index: "b".into() });
        assert_eq!(of(r#"{"index": {"_index": "b", "status": 409}}"#), Outcome::Stored);
        assert!(matches!(of(r#"{"update": {"_index": "b", "status": 409}}"#), Outcome::Overloaded(_)));
        let Outcome::Refused(words) = failed(400, "mapper_parsing_exception", "failed to parse") else {
            panic!("a document that can't be read is refused")
        };
        assert_eq!(&*words, "mapper_parsing_exception: failed to parse; caused by deeper: (400)");
        for status in [429, 502, 503, 504] {
            assert!(matches!(failed(status, "any", "any"), Outcome::Overloaded(_)), "{status}");
        }
        for status in [401, 403, 404, 500] {
            assert!(matches!(failed(status, "any", "any"), Outcome::NotYet(_)), "{status}");
        }
    }

    #[test]
    fn what_speaks_of_the_store_is_no_reason_to_refuse_a_document() {
        for kind in OF_THE_STORE {
            assert!(matches!(failed(400, kind, "any"), Outcome::NotYet(_)), "{kind}");
        }
        for words in WORDS_OF_THE_STORE {
            let reason = format!("x {words} y");
            assert!(matches!(failed(400, "illegal_argument_exception", &reason), Outcome::NotYet(_)), "{words}");
        }
    }

    #[test]
    fn an_answer_that_is_none_fails_as_a_whole() {
        for (answer, count) in [
            ("", 0),
            ("{}", 0),
            (r#"{"items": []}"#, 1),
            (r#"{"items": [{"delete": {"status": 200}}]}"#, 1),
            (r#"{"items": [{"create": {}}]}"#, 1),
        ] {
            assert!(matches!(outcomes(answer.as_bytes(), count), Err(Failure::Odd(_))), "{answer}");
        }
    }
}
