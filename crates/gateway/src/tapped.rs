//! Events that pass the gateway, for those who watch.

use tap::{Passing, Point, Taps};

use crate::event_types::{Slot, TypeCache, TypeRegistry};
use crate::problem::Problem;
use crate::refusals::{RefusalSample, Sender, TypeLabel};

/// An event of the type at `slot` was received. Its payload isn't shown if the type hides something: its steps haven't run.
#[cold]
pub(crate) fn received(taps: &Taps, types: &TypeCache, slot: Slot, (source, received_at): (&str, i64), payload: &str) {
    let name = &types.get(slot).name;
    let is_hidden = types.table().withholds(name);
    let passing = Passing {
        type_name: name.as_str(),
        source,
        received_at,
        bytes: payload.len(),
        payload: (!is_hidden).then_some(payload.as_bytes()),
        ..Passing::default()
    };
    taps.offer(Point::Received, &passing);
}

/// An event was rejected.
pub(crate) fn refused(taps: &Taps, types: &TypeRegistry, sender: Sender<'_>, problem: &Problem, line: Option<u32>) {
    if taps.want(Point::Refused) {
        let name = problem.type_name.as_deref();
        let label = TypeLabel::of(types, name, problem.code);
        sample(taps, &RefusalSample::of(types, &label, name, sender, problem, line));
    }
}

/// The same, as the log shows it: without values of the event.
pub(crate) fn sample(taps: &Taps, sample: &RefusalSample) {
    let passing = Passing {
        type_name: &sample.type_name,
        source: &sample.source,
        received_at: sample.at,
        reason: sample.code.as_str(),
        pointer: sample.pointer.as_deref(),
        line: sample.line,
        ..Passing::default()
    };
    taps.offer(Point::Refused, &passing);
}
