//! What a `_bulk` request came to, document by document. A status of 200 says nothing of them.

use serde::Deserialize;

use super::error::Failure;
use super::store_error::StoreError;
use sink::Reason;

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
    /// The store is overloaded, or a part of it isn't available: this is not about the document.
    Overloaded(Reason),
    /// The store failed at this document, or doesn't accept it in its present state. The document may be there all the same.
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
    result: Option<String>,
    error: Option<StoreError>,
}

impl Done {
    fn words(&self) -> String {
        let words = self.error.as_ref().map(StoreError::words);
        format!("{} ({})", words.as_deref().unwrap_or("without a word of why"), self.status)
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

/// Why a status of success doesn't prove that the document is there. Only its result does.
///
/// A drop processor's answer is `noop`, under the name `index` also if `update` was asked for. Under `update`, `noop` says that
/// the document is there and was equal before.
fn missing(when_taken: &WhenTaken, done: &Done) -> Option<Outcome> {
    let status = done.status;
    match (done.result.as_deref(), when_taken) {
        (Some("created" | "updated"), _) | (Some("noop"), WhenTaken::Again) => None,
        (Some("noop"), _) => Some(Outcome::Refused(
            format!(
                "the store answered {status} and left the document out (\"result\": \"noop\"): a drop processor of its ingest \
                 pipeline dropped it. Change the pipeline, then replay the letter"
            )
            .into(),
        )),
        (Some(result), _) => Some(Outcome::NotYet(
            format!("the store answered {status} with the result {result}, which doesn't say that the document is there")
                .into(),
        )),
        // What creates a document answers 201.
        (None, WhenTaken::Compare) if status != 201 => {
            Some(Outcome::NotYet(format!("the store answered {status} without a result").into()))
        }
        (None, _) => None,
    }
}

fn outcome(item: Item) -> Result<Outcome, Failure> {
    let (when_taken, done) = match (item.create, item.index, item.update) {
        (Some(done), None, None) => (WhenTaken::Compare, done),
        (None, Some(done), None) => (WhenTaken::Newer, done),
        (None, None, Some(done)) => (WhenTaken::Again, done),
        _ => return Err(Failure::Odd("its answer to _bulk has something that wasn't asked for".to_owned())),
    };
    let words = || -> Reason { done.words().into() };
    Ok(match done.status {
        200..=299 => missing(&when_taken, &done).unwrap_or(Outcome::Stored),
        409 => match when_taken {
            WhenTaken::Compare => Outcome::Taken { index: done.index },
            WhenTaken::Newer => Outcome::Stored,
            WhenTaken::Again => Outcome::Overloaded(words()),
        },
        429 | 502..=504 => Outcome::Overloaded(words()),
        400 | 413 | 422 if !done.error.as_ref().is_some_and(StoreError::is_of_the_store) => Outcome::Refused(words()),
        _ => Outcome::NotYet(words()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store_error::{OF_THE_STORE, WORDS_OF_THE_STORE};

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
        for status in [401, 403, 404, 408, 500, 507] {
            assert!(matches!(failed(status, "any", "any"), Outcome::NotYet(_)), "{status}");
        }
    }

    #[test]
    fn a_success_that_proves_nothing_is_none() {
        let result = |verb: &str, status: u16, result: &str| {
            of(&format!(r#"{{"{verb}": {{"_index": "i", "status": {status}, "result": "{result}"}}}}"#))
        };
        for verb in ["create", "index"] {
            assert_eq!(result(verb, 201, "created"), Outcome::Stored);
            assert_eq!(result(verb, 200, "updated"), Outcome::Stored);
            let Outcome::Refused(reason) = result(verb, 200, "noop") else { panic!("{verb}: nothing is stored") };
            assert!(reason.contains("drop processor"), "{reason}");
            assert!(matches!(result(verb, 200, "not_found"), Outcome::NotYet(_)), "{verb}");
        }
        assert_eq!(result("update", 200, "noop"), Outcome::Stored, "it was equal before");
        assert!(matches!(of(r#"{"create": {"_index": "i", "status": 200}}"#), Outcome::NotYet(_)));
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
