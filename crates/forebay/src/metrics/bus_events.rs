//! The metric of events that are read over the bus: a server and a writer have it.

use super::exposition::Exposition;
use crate::bus_events;

pub(crate) fn add(text: &mut Exposition) {
    let Some(answers) = bus_events::answers() else { return };
    let help = "Requests for events over the bus, by answer.";
    text.counter("forebay_bus_event_requests_total", help, |series| {
        for (answer, counter) in [("event", &answers.events), ("error", &answers.errors), ("none", &answers.none)] {
            series.count(&[("answer", answer)], counter.get());
        }
    });
}
