//! What a `_bulk` request came to, document by document. A status of 200 says nothing of them.

use serde::Deserialize;

use super::error::Failure;
use super::fault::fault;
use super::store_error::StoreError;
use sink::{Fault, Reason};

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
    /// It isn't known to be there: what the failure is about, and why.
    Failed(Fault, Reason),
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
        // The pipeline may drop all documents.
        (Some("noop"), _) => Some(Outcome::Failed(
            Fault::Unclear,
            format!(
                "the store answered {status} and left the document out (\"result\": \"noop\"): a drop processor of its ingest \
                 pipeline dropped it. Change the pipeline, then replay the letter"
            )
            .into(),
        )),
        (Some(result), _) => Some(Outcome::Failed(
            Fault::Passing,
            format!("the store answered {status} with the result {result}, which doesn't say that the document is there")
                .into(),
        )),
        // What creates a document answers 201.
        (None, WhenTaken::Compare) if status != 201 => {
            Some(Outcome::Failed(Fault::Passing, format!("the store answered {status} without a result").into()))
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
            WhenTaken::Again => Outcome::Failed(Fault::Store, words()),
        },
        status => Outcome::Failed(fault(status, done.error.as_ref()), words()),
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
        assert!(matches!(of(r#"{"update": {"_index": "b", "status": 409}}"#), Outcome::Failed(Fault::Store, _)));
        let Outcome::Failed(Fault::Unclear, words) = failed(400, "mapper_parsing_exception", "failed to parse") else {
            panic!("it may be about the document")
        };
        assert_eq!(&*words, "mapper_parsing_exception: failed to parse; caused by deeper: (400)");
        assert!(matches!(failed(429, "any", "any"), Outcome::Failed(Fault::Store, _)));
        assert!(matches!(failed(404, "any", "any"), Outcome::Failed(Fault::Passing, _)));
    }

    #[test]
    fn a_success_that_proves_nothing_is_none() {
        let result = |verb: &str, status: u16, result: &str| {
            of(&format!(r#"{{"{verb}": {{"_index": "i", "status": {status}, "result": "{result}"}}}}"#))
        };
        for verb in ["create", "index"] {
            assert_eq!(result(verb, 201, "created"), Outcome::Stored);
            assert_eq!(result(verb, 200, "updated"), Outcome::Stored);
            let Outcome::Failed(Fault::Unclear, reason) = result(verb, 200, "noop") else {
                panic!("{verb}: not stored")
            };
            assert!(reason.contains("drop processor"), "{reason}");
            assert!(matches!(result(verb, 200, "not_found"), Outcome::Failed(Fault::Passing, _)), "{verb}");
        }
        assert_eq!(result("update", 200, "noop"), Outcome::Stored, "it was equal before");
        assert!(matches!(of(r#"{"create": {"_index": "i", "status": 200}}"#), Outcome::Failed(Fault::Passing, _)));
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
