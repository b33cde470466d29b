//! The response to a request that is rejected.

use std::net::IpAddr;
use std::sync::Arc;

use crate::event_types::Slot;
use crate::problem::{Problem, Refused};
use crate::refusals::{RefusalSample, TypeLabel};
use crate::responses;
use crate::route::RouteName;
use crate::shard::ShardContext;
use crate::tapped;
use http1::Response;
use tap::Point;

/// The request that is rejected.
pub(super) struct Origin<'a> {
    pub(super) route: RouteName,
    /// The source of its token; empty without one.
    pub(super) source: &'a Arc<str>,
    /// None if the request has no head that can be read.
    pub(super) client: Option<IpAddr>,
    /// The type that its head names.
    pub(super) named: Option<Slot>,
}

/// The response to a request that is rejected: counted, and sampled for the log if it posts events.
pub(super) fn reject(shard: &ShardContext, refused: &Refused, origin: &Origin<'_>) -> Response {
    let named = || origin.named.map(|slot| shard.types().get(slot).name.clone());
    let name = refused.type_name.as_deref().cloned().or_else(named);
    let rules = shard.rules();
    let label = TypeLabel::of(&rules.types, name.as_ref(), refused.code);
    let counters = &shard.shared.counters;
    counters.refusals.add(&label, origin.source, refused.code, 1);
    if let Some(client) = origin.client
        && matches!(origin.route, RouteName::Event | RouteName::Batch | RouteName::Intake)
    {
        let sample = || {
            RefusalSample::of(&rules.types, &label, name.as_ref(), (origin.source, client), refused as &Problem, None)
        };
        counters.refusal_samples.add(refused.code, sample);
        if shard.shared.taps.want(Point::Refused) {
            tapped::sample(shard.shared.taps, &sample());
        }
    }
    responses::problem(refused)
}
