//! The routes that a reload removes, as sentences for the operator: their pending events stay in the journal.

use event::TypeName;
use ledger::LedgerRow;

/// A sentence for each route of these rows that isn't kept and has pending events. Routes of aggregates' results aren't compared.
pub(crate) fn removed_routes(rows: &[LedgerRow], is_kept: impl Fn(&TypeName, &str) -> bool) -> Vec<String> {
    let mut sentences = Vec::new();
    for row in rows.iter().filter(|row| !row.derived) {
        for route in row.sinks.iter().filter(|route| !route.removed && !is_kept(&row.type_name, &route.sink)) {
            let (events, them) = match route.pending {
                0 => continue,
                1 => ("1 pending event stays".to_owned(), "it"),
                pending => (format!("{pending} pending events stay"), "them"),
            };
            sentences.push(format!(
                "the route from {} to {} is removed: its {events} in the journal until you restore the route, or discard {them}",
                row.type_name, route.sink
            ));
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use ledger::SinkRow;

    use super::*;

    fn route(sink: &str, pending: u64, removed: bool) -> SinkRow {
        SinkRow { sink: sink.into(), stored: 1, dead: 0, skipped: 0, lost: 0, pending, removed }
    }

    #[test]
    fn removed_routes_with_pending_events_are_named() {
        let row = |name: &str, sinks: Vec<SinkRow>| LedgerRow {
            type_name: TypeName::new(name).unwrap(),
            accepted: 9,
            derived: false,
            sinks,
        };
        let job =
            row("job", vec![route("a", 5, false), route("b", 6, false), route("c", 0, false), route("d", 7, true)]);
        let gone = row("order", vec![route("a", 1, false)]);
        let hits = LedgerRow { derived: true, ..row("job.hits", vec![route("b", 3, false)]) };
        let expected = [
            "the route from job to b is removed: its 6 pending events stay in the journal until you restore the route, or discard them",
            "the route from order to a is removed: its 1 pending event stays in the journal until you restore the route, or discard it",
        ];
        let is_kept = |name: &TypeName, sink: &str| (name.as_str(), sink) == ("job", "a");
        assert_eq!(removed_routes(&[job, gone, hits], is_kept), expected);
    }
}
