//! `GET /api/refused`: the last rejected events and requests, as the log has them, and the counts of all since the start.

use std::cmp::Reverse;
use std::sync::Arc;

use gateway::{GatewayCounters, RefusalCount, RefusalSample};
use hyper::StatusCode;
use serde::Serialize;
use text::rfc3339;

use super::parameters::Parameters;
use crate::admin::response::{AdminResponse, json};
use crate::recent_refusals::RecentRefusals;
use crate::type_info::TypeInfo;

/// The rejections of a server or a gateway.
#[derive(Clone)]
pub(crate) struct Refusals {
    recent: RecentRefusals,
    gateway: Arc<GatewayCounters>,
    types: TypeInfo,
}

#[derive(Serialize)]
struct RefusedJson {
    /// The newest first.
    refused: Vec<RefusalJson>,
    /// The largest first.
    counts: Vec<CountJson>,
    left_out: u64,
}

#[derive(Serialize)]
struct RefusalJson {
    at: String,
    code: &'static str,
    r#type: Box<str>,
    source: Arc<str>,
    client: String,
    pointer: Option<Box<str>>,
    line: Option<u32>,
    /// What to do.
    help: String,
    /// The type as which such events are stored instead, by the present configuration.
    refused_to: Option<String>,
}

#[derive(Serialize)]
struct CountJson {
    code: &'static str,
    r#type: Box<str>,
    source: Arc<str>,
    count: u64,
}

impl Refusals {
    pub(crate) const fn new(recent: RecentRefusals, gateway: Arc<GatewayCounters>, types: TypeInfo) -> Self {
        Self { recent, gateway, types }
    }

    pub(super) fn respond(&self, query: Option<&str>) -> AdminResponse {
        let wanted = match Parameters::read(query, &["code", "type", "source"]) {
            Ok(wanted) => wanted,
            Err(refused) => return refused,
        };
        let is_wanted = |code: &str, type_name: &str, source: &str| {
            let all = [("code", code), ("type", type_name), ("source", source)];
            all.into_iter().all(|(name, value)| wanted.get(name).is_none_or(|wanted| wanted == value))
        };
        let (samples, left_out) =
            self.recent.list(|sample| is_wanted(sample.code.as_str(), &sample.type_name, &sample.source));
        let mut counts = self.gateway.refusal_list();
        counts.retain(|count| is_wanted(count.code.as_str(), &count.type_name, &count.source));
        counts.sort_by_key(|count| Reverse(count.count));
        let refused = samples.into_iter().map(|sample| self.shown(sample)).collect();
        json(
            StatusCode::OK,
            &RefusedJson { refused, counts: counts.into_iter().map(CountJson::of).collect(), left_out },
        )
    }

    fn shown(&self, sample: RefusalSample) -> RefusalJson {
        let RefusalSample { at, code, pointer, type_name, source, client, line } = sample;
        RefusalJson {
            at: rfc3339::format(at),
            code: code.as_str(),
            client: client.to_string(),
            pointer,
            line,
            help: code.help(),
            refused_to: code.is_about_the_event().then(|| self.types.refused_to(&type_name)).flatten(),
            r#type: type_name,
            source,
        }
    }
}

impl CountJson {
    fn of(count: RefusalCount) -> Self {
        let RefusalCount { code, type_name, source, count } = count;
        Self { code: code.as_str(), r#type: type_name, source, count }
    }
}
