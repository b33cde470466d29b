//! Merging: the results of several origins for one window and group become one, as if one origin had received all
//! events.

use std::collections::BTreeSet;

use text::{hex, rfc3339};

use super::codec::Reader;
use super::group::{Group, Key};
use super::result;
use super::rules::AggregateRules;
use json::JsonPointer;
use json::text::scalar_text;

/// Why results can't be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotMergeable {
    /// There are none.
    #[error("there are no results to merge: send at least one")]
    Nothing,
    /// One has no readable state.
    #[error(
        "result {0} carries no state of this aggregate: set `state = true`, and the same definition on all servers"
    )]
    NoState(usize),
    /// They are of different windows or groups.
    #[error("result {0} is of another window or group than the first one: merge only results of one window and group")]
    Other(usize),
}

/// A parsed result.
struct Partial {
    window: String,
    part: Option<String>,
    seconds: f64,
    origin: String,
    key: Key,
    group: Group,
}

/// Merges the payloads of results of one window and group, each the newest of its origin. One origin may have results
/// of several parts. The merged payload has `origins` instead of `origin`, and the sum of the revisions.
///
/// # Errors
/// [`NotMergeable`] with the number of the result that doesn't fit, from 0.
pub fn merge(rules: &AggregateRules, payloads: &[&str]) -> Result<String, NotMergeable> {
    let mut origins = BTreeSet::new();
    let mut merged: Option<Partial> = None;
    for (number, payload) in payloads.iter().enumerate() {
        let partial = read(rules, payload).ok_or(NotMergeable::NoState(number))?;
        origins.insert(partial.origin.clone());
        match &mut merged {
            None => merged = Some(partial),
            Some(first) if first.window == partial.window && first.key == partial.key => {
                // A result of the window and its parts together belongs to neither.
                first.part = first.part.take().filter(|part| partial.part.as_ref() == Some(part));
                first.group.merge(&partial.group);
            }
            Some(_) => return Err(NotMergeable::Other(number)),
        }
    }
    let merged = merged.ok_or(NotMergeable::Nothing)?;
    let mut payload = format!("{{\"window\":{},\"group\":", merged.window);
    merged.key.write(&rules.group_by, &mut payload);
    if merged.key.is_overflow() {
        payload.push_str(",\"overflow\":true");
    }
    if let Some(part) = &merged.part {
        payload.push_str(",\"part\":");
        payload.push_str(part);
    }
    result::write_measures(rules, &merged.key, &merged.group, merged.seconds, &mut payload);
    let origins = serde_json::Value::from(origins.into_iter().collect::<Vec<_>>());
    payload.push_str(&format!(",\"origins\":{origins},\"revision\":{}}}", merged.group.count));
    Ok(payload)
}

fn read(rules: &AggregateRules, payload: &str) -> Option<Partial> {
    let at = |pointer: &str| pointer.parse::<JsonPointer>().ok()?.lookup(payload);
    let text = |pointer: &str| at(pointer).and_then(scalar_text);
    let bytes = hex::decode(&text("/state")?)?;
    let mut from = Reader::new(&bytes);
    let fingerprint = from.raw(8).ok()?;
    let key = Key::restore(&mut from).ok()?;
    let group = Group::restore(rules, &mut from).ok()?;
    from.end().ok()?;
    let (start, end) = (rfc3339::parse(&text("/window/start")?).ok()?, rfc3339::parse(&text("/window/end")?).ok()?);
    let partial = Partial {
        window: at("/window")?.to_owned(),
        part: at("/part").map(str::to_owned),
        seconds: (end - start) as f64 / 1e6,
        origin: text("/origin")?.into_owned(),
        key,
        group,
    };
    (fingerprint == rules.fingerprint.to_le_bytes()).then_some(partial)
}
