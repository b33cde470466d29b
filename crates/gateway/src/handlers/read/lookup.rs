//! The common parts of lookups in stores.

use std::sync::Arc;

use event::read::{ReadError, StoreReader};
use event::{Position, TypeName};

use super::cursor;
use super::parameters::{Parameters, bad};
use crate::admission::ReadPermit;
use crate::error_code::ErrorCode;
use crate::problem::{Problem, Refused};
use crate::shard::ShardContext;
use http1::Response;

/// The requested type, if any.
pub(super) fn type_name(parameters: &Parameters) -> Result<Option<TypeName>, Refused> {
    let name =
        |text: &str| TypeName::new(text).map_err(|error| Problem::boxed(ErrorCode::UnknownType, error.to_string()));
    parameters.text("type").map(name).transpose()
}

/// The sinks that haven't reached a position yet.
pub(super) fn pending(shard: &ShardContext, readers: &[Arc<dyn StoreReader>], position: Position) -> Vec<Arc<str>> {
    if !shard.log.has_durable(position) {
        return Vec::new();
    }
    let is_behind = |reader: &&Arc<dyn StoreReader>| reader.settled_up_to(position.shard) < position.sequence;
    readers.iter().filter(is_behind).map(|reader| reader.name().clone()).collect()
}

/// The response keeps only the memory that it uses.
pub(super) fn with_room(response: Response, mut permit: ReadPermit) -> Response {
    permit.shrink(response.body.len());
    Response { reservation: Some(Box::new(permit)), ..response }
}

const NOT_NEWEST_FIRST: &str = "the store of this type cannot be read newest first; use `order=asc`";

pub(super) fn nothing_to_read() -> Refused {
    Problem::boxed(
        ErrorCode::NotReadable,
        "no type has a route to a readable sink: add a route to one in the configuration",
    )
}

/// Why a store can't be read. Its error message is only for the operator.
pub(super) fn of_store(error: &ReadError) -> Refused {
    match error {
        ReadError::Busy => Problem::boxed(ErrorCode::Overload, "too many reads are waiting for the store; retry later"),
        ReadError::Unavailable(_) => Problem::boxed(
            ErrorCode::StoreUnavailable,
            "the store cannot be read now; retry later. The server's log has the reason",
        ),
        ReadError::Bookmark => cursor::of_another_query(),
        ReadError::Untyped(why) => Problem::boxed(ErrorCode::NotReadable, why.to_string()),
        ReadError::NewestFirst(_) => bad(format!("`order=desc`: {NOT_NEWEST_FIRST}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_error_is_not_in_the_response() {
        let canary = || "table invoices violates iban_check".into();
        for error in
            [ReadError::Unavailable(canary()), ReadError::NewestFirst(canary()), ReadError::Busy, ReadError::Bookmark]
        {
            let problem = of_store(&error);
            let body = String::from_utf8(problem.json()).unwrap();
            assert!(!body.contains("invoices") && !body.contains("iban"), "{body}");
        }
    }
}
