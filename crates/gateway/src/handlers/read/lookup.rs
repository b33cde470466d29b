//! The common parts of lookups in stores.

use std::sync::Arc;

use event::read::{ReadError, StoreReader};
use event::{Position, TypeName};

use super::cursor;
use super::parameters::{Parameters, bad};
use crate::admission::ReadPermit;
use crate::error_code::ErrorCode;
use crate::event_types::{StoreReaders, TypeRegistry};
use crate::problem::{Problem, Refused};
use crate::shard::ShardContext;
use http1::Response;

/// The requested type, if any.
pub(super) fn type_name(parameters: &Parameters) -> Result<Option<TypeName>, Refused> {
    let name =
        |text: &str| TypeName::new(text).map_err(|error| Problem::boxed(ErrorCode::UnknownType, error.to_string()));
    parameters.text("type").map(name).transpose()
}

/// The stores that may have an event: those of the requested type, or of all types. Of a sink with shards these are all
/// databases, or with the parameter `shard` the one of its value.
pub(super) fn stores(types: &TypeRegistry, parameters: &Parameters) -> Result<Vec<Arc<dyn StoreReader>>, Refused> {
    let of_types = match type_name(parameters)? {
        Some(name) => vec![types.readers_of(&name)?],
        None => types.readers(),
    };
    let shard = parameters.text(SHARD);
    if shard.is_some() && !of_types.iter().any(StoreReaders::has_shards) {
        return Err(no_shards());
    }
    let mut all: Vec<Arc<dyn StoreReader>> = Vec::new();
    for readers in &of_types {
        let wanted: Vec<_> = match shard {
            Some(value) => vec![readers.of_shard(Some(value))],
            None => readers.all().collect(),
        };
        for reader in wanted {
            if !all.iter().any(|known| known.name() == reader.name()) {
                all.push(reader.clone());
            }
        }
    }
    if all.is_empty() { Err(nothing_to_read()) } else { Ok(all) }
}

/// The store of a page: the common database, or with the parameter `shard` the one of its value.
pub(super) fn store_of_page(readers: &StoreReaders, parameters: &Parameters) -> Result<Arc<dyn StoreReader>, Refused> {
    let shard = parameters.text(SHARD);
    if shard.is_some() && !readers.has_shards() {
        return Err(no_shards());
    }
    Ok(readers.of_shard(shard).clone())
}

fn no_shards() -> Refused {
    bad("`shard`: the sink that is read has no shards: leave the parameter out, or name another `type`".to_owned())
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

/// The parameter with the value that chooses the database.
pub(super) const SHARD: &str = "shard";
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
