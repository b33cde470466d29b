//! The results of a `_bulk` request, document by document. A status of 200 says nothing about them.

use serde::Deserialize;

use super::error::Failure;
use super::fault::fault;
use super::store_error::StoreError;
use sink::{Fault, Reason};

/// The result of one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is stored.
    Stored,
    /// There is a document with its id, in this index.
    Taken {
        /// The index; for a data stream, the backing index.
        index: String,
    },
    /// It may not be stored: what is at fault, and why.
    Failed(Fault, Reason),
}

#[derive(Deserialize)]
struct Answer {
    items: Vec<Item>,
}

/// One of these is present, by the action.
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
    fn message(&self) -> String {
        let message = self.error.as_ref().map(StoreError::message);
        format!("{} ({})", message.as_deref().unwrap_or("without a reason"), self.status)
    }
}

/// The outcomes in a response to `count` actions, in order.
pub(super) fn outcomes(answer: &[u8], count: usize) -> Result<Vec<Outcome>, Failure> {
    let answer: Answer = serde_json::from_slice(answer).map_err(|error| {
        Failure::Unexpected(format!("its response to _bulk is invalid ({error}): check the proxies in front of it"))
    })?;
    if answer.items.len() != count {
        return Err(Failure::Unexpected(format!(
            "its response to {count} actions has {} outcomes: check the proxies in front of it",
            answer.items.len()
        )));
    }
    answer.items.into_iter().map(outcome).collect()
}

/// The meaning of a version conflict.
enum WhenTaken {
    /// There is a document: possibly this one.
    Compare,
    /// A newer revision exists, or this one.
    Newer,
    /// Other writers have changed it at the same time, repeatedly.
    Again,
}

/// Why a successful status doesn't prove that the document is stored. Only its result does.
///
/// A drop processor's response is `noop`, under the name `index` even for `update`. Under `update`, `noop` means that
/// the document exists and was equal.
fn missing(when_taken: &WhenTaken, done: &Done) -> Option<Outcome> {
    let status = done.status;
    match (done.result.as_deref(), when_taken) {
        (Some("created" | "updated"), _) | (Some("noop"), WhenTaken::Again) => None,
        // The pipeline may drop all documents.
        (Some("noop"), _) => Some(Outcome::Failed(
            Fault::Unclear,
            format!(
                "the store responded {status} and dropped the document (\"result\": \"noop\"): a drop processor of its \
                 ingest pipeline did it. Change the pipeline, then replay the dead letter"
            )
            .into(),
        )),
        (Some(result), _) => Some(Outcome::Failed(
            Fault::Passing,
            format!(
                "the store responded {status} with the result {result}, which doesn't show that the document is \
                 stored"
            )
            .into(),
        )),
        // Creating a document returns 201.
        (None, WhenTaken::Compare) if status != 201 => {
            Some(Outcome::Failed(Fault::Passing, format!("the store responded {status} without a result").into()))
        }
        (None, _) => None,
    }
}

fn outcome(item: Item) -> Result<Outcome, Failure> {
    let (when_taken, done) = match (item.create, item.index, item.update) {
        (Some(done), None, None) => (WhenTaken::Compare, done),
        (None, Some(done), None) => (WhenTaken::Newer, done),
        (None, None, Some(done)) => (WhenTaken::Again, done),
        _ => {
            return Err(Failure::Unexpected(
                "its response to _bulk has an action that wasn't requested: check the proxies in front of it"
                    .to_owned(),
            ));
        }
    };
    let message = || -> Reason { done.message().into() };
    Ok(match done.status {
        200..=299 => missing(&when_taken, &done).unwrap_or(Outcome::Stored),
        409 => match when_taken {
            WhenTaken::Compare => Outcome::Taken { index: done.index },
            WhenTaken::Newer => Outcome::Stored,
            WhenTaken::Again => Outcome::Failed(Fault::Store, message()),
        },
        status => Outcome::Failed(fault(status, done.error.as_ref()), message()),
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
        let Outcome::Failed(Fault::Unclear, message) = failed(400, "mapper_parsing_exception", "failed to parse")
        else {
            panic!("the document may be at fault")
        };
        assert_eq!(&*message, "mapper_parsing_exception: failed to parse; caused by deeper: (400)");
        assert!(matches!(failed(429, "any", "any"), Outcome::Failed(Fault::Store, _)));
        assert!(matches!(failed(404, "any", "any"), Outcome::Failed(Fault::Passing, _)));
    }

    #[test]
    fn success_without_proof_is_not_stored() {
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
    fn invalid_response_fails_as_a_whole() {
        for (answer, count) in [
            ("", 0),
            ("{}", 0),
            (r#"{"items": []}"#, 1),
            (r#"{"items": [{"delete": {"status": 200}}]}"#, 1),
            (r#"{"items": [{"create": {}}]}"#, 1),
        ] {
            assert!(matches!(outcomes(answer.as_bytes(), count), Err(Failure::Unexpected(_))), "{answer}");
        }
    }
}
