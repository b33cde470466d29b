//! What is at fault in each error of a document: the document, the store, or either.

use std::ops::RangeInclusive;

use super::store_error::StoreError;
use sink::Fault;

/// How an error matches a row.
#[derive(Clone, Copy, Debug)]
enum Says {
    Anything,
    /// The error's type.
    Kind(&'static str),
    /// A part of its reason.
    Words(&'static str),
}

/// The errors of documents: the first row that matches decides. The last one is for errors that no other row lists.
const FAULTS: [(RangeInclusive<u16>, Says, Fault); 18] = [
    (429..=429, Says::Anything, Fault::Store),
    (502..=504, Says::Anything, Fault::Store),
    // The disk of a node is nearly full: the store sets this block automatically.
    (400..=499, Says::Words("read-only / allow delete"), Fault::Store),
    (400..=499, Says::Words("flood-stage"), Fault::Store),
    (507..=507, Says::Anything, Fault::Store),
    // The index or the cluster, in the state that an operator has chosen. Old indices are often closed or blocked.
    (400..=499, Says::Kind("cluster_block_exception"), Fault::Passing),
    (400..=499, Says::Kind("index_closed_exception"), Fault::Passing),
    (400..=499, Says::Kind("invalid_index_name_exception"), Fault::Passing),
    (400..=499, Says::Kind("validation_exception"), Fault::Passing),
    (400..=499, Says::Words("this action would add"), Fault::Passing),
    (400..=499, Says::Words("op_type of create are allowed in data streams"), Fault::Passing),
    (400..=499, Says::Words("no write index is defined"), Fault::Passing),
    (400..=499, Says::Words("pipeline with id"), Fault::Passing),
    // A value that doesn't fit its field: the store names the document.
    (400..=400, Says::Kind("document_parsing_exception"), Fault::Record),
    (400..=400, Says::Words("in document with id"), Fault::Record),
    // A mapping, a template, a missing routing, a pipeline, or the document: only its neighbours can show it.
    (400..=400, Says::Anything, Fault::Unclear),
    (413..=413, Says::Anything, Fault::Unclear),
    (422..=422, Says::Anything, Fault::Unclear),
];

/// What is at fault in an error of a document.
pub(super) fn fault(status: u16, error: Option<&StoreError>) -> Fault {
    let says = |row: Says| match row {
        Says::Anything => true,
        Says::Kind(kind) => error.is_some_and(|error| error.kind == kind),
        Says::Words(words) => error.is_some_and(|error| error.reason().contains(words)),
    };
    let row = FAULTS.iter().find(|(statuses, row, _)| statuses.contains(&status) && says(*row));
    row.map_or(Fault::Passing, |(.., fault)| *fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, kind: &str, reason: &str) -> Fault {
        let error = format!(r#"{{"type": "{kind}", "reason": "{reason}"}}"#);
        fault(status, Some(&serde_json::from_str(&error).unwrap()))
    }

    #[test]
    fn each_row_has_its_fault() {
        for (statuses, says, fault) in FAULTS {
            let status = *statuses.start();
            let found = match says {
                Says::Anything => of(status, "any_exception", "any"),
                Says::Kind(kind) => of(status, kind, "any"),
                Says::Words(words) => of(status, "any_exception", &format!("x {words} y")),
            };
            assert_eq!(found, fault, "{status} {says:?}");
        }
        assert_eq!(of(504, "any_exception", "any"), Fault::Store);
        assert_eq!(of(429, "document_parsing_exception", "any"), Fault::Store, "the first row decides");
        assert_eq!(
            of(403, "cluster_block_exception", "[FORBIDDEN/12/index read-only / allow delete (api)]"),
            Fault::Store
        );
        assert_eq!(of(403, "cluster_block_exception", "[FORBIDDEN/8/index write (api)]"), Fault::Passing);
    }

    #[test]
    fn unknown_errors_may_pass() {
        for status in [401, 403, 404, 405, 408, 409, 500, 501, 505] {
            assert_eq!(of(status, "any_exception", "any"), Fault::Passing, "{status}");
        }
        assert_eq!(fault(400, None), Fault::Unclear);
        assert_eq!(of(400, "mapper_parsing_exception", "Failed to parse mapping [_doc]: x"), Fault::Unclear);
        assert_eq!(of(400, "routing_missing_exception", "routing is required for [i]/[1]"), Fault::Unclear);
        let value = "failed to parse field [n] of type [long] in document with id '1'. Preview of field's value: 'x'";
        assert_eq!(of(400, "mapper_parsing_exception", value), Fault::Record);
    }
}
