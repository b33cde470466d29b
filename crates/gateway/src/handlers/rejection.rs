//! The response to a request that is rejected.

use crate::http1::Response;
use crate::problem::Refused;
use crate::responses;
use crate::shard::ShardContext;

/// The response to a request that is rejected, counted.
pub(super) fn reject(shard: &ShardContext, refused: &Refused) -> Response {
    shard.cells().refused(refused.code);
    responses::problem(refused)
}
