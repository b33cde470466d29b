//! Metrics of rejected requests and events, and of their quarantine.

use gateway::{ErrorCode, GatewayCounters};

use super::exposition::Exposition;

pub(super) fn add(text: &mut Exposition, gateway: &GatewayCounters) {
    let counts = gateway.refusal_list();
    let help = "Rejected requests and records of batches, by code, type and source. Type and source are left out if there is none.";
    text.counter("forebay_refusals_total", help, |series| {
        for code in ErrorCode::ALL {
            let of_code = counts.iter().filter(|count| count.code == code);
            let is_plain = |type_name: &str, source: &str| type_name.is_empty() && source.is_empty();
            // Each code is there from the start.
            if !of_code.clone().any(|count| is_plain(&count.type_name, &count.source)) {
                series.count(&[("code", code.as_str())], 0);
            }
            for count in of_code {
                let mut labels = vec![("code", code.as_str())];
                labels.extend([("type", &*count.type_name), ("source", &*count.source)]);
                labels.retain(|(_, value)| !value.is_empty());
                series.count(&labels, count.count);
            }
        }
    });
    let help = "Rejected events of types with refused_to, by outcome: stored, stored before, or left out.";
    let quarantine = gateway.quarantine();
    text.counter("forebay_quarantine_events_total", help, |series| {
        for (result, count) in
            [("stored", &quarantine.stored), ("repeated", &quarantine.repeated), ("left_out", &quarantine.left_out)]
        {
            series.count(&[("result", result)], count.get());
        }
    });
}
