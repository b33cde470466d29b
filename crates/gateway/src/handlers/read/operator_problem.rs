//! Failed reads, as operators see them.

use event::read::ReadError;

use super::lookup::of_store;
use crate::problem::{Problem, Refused};

/// Why a store can't be read, for an operator: with its error message.
pub(super) fn shown_to_operators(error: &ReadError) -> Refused {
    let Problem { code, detail, .. } = *of_store(error);
    match error {
        ReadError::Unavailable(reason) => Problem::boxed(code, format!("the store cannot be read now: {reason}")),
        ReadError::NewestFirst(why) => Problem::boxed(code, format!("`order=desc`: {why}. Use `order=asc`")),
        _ => Problem::boxed(code, detail),
    }
}
