//! `GET /debug/shards`: the connections, bytes in flight and long requests of each shard.

use std::time::Duration;

use gateway::{GatewayControl, ShardState};
use hyper::StatusCode;

use crate::admin::response::{AdminResponse, json};
use admin_api::debug::{LongRequestsJson, ShardJson, ShardsJson};

/// A shard that takes longer is at work, and the answer says so.
const WAIT: Duration = Duration::from_secs(1);

pub(super) async fn respond(gateway: &GatewayControl) -> AdminResponse {
    let states = gateway.shard_states(WAIT).await;
    json(StatusCode::OK, &ShardsJson { shards: states.into_iter().enumerate().map(of_shard).collect() })
}

fn of_shard((shard, state): (usize, ShardState)) -> ShardJson {
    let ShardState { connections, bytes_in_flight, long_requests } = state;
    let long_requests = long_requests.map(|long| LongRequestsJson {
        arriving: long.arriving,
        processing: long.processing,
        answering: long.answering,
        longest_seconds: long.longest_seconds,
    });
    ShardJson { shard, connections, bytes_in_flight, long_requests }
}
