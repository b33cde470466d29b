//! What needs an operator: the one source of the problems that the status and the overview show.

use std::cmp::Reverse;

use admin_api::health::{FindingJson, FindingLevel};
use admin_api::overview::LedgerRowJson;
use admin_api::status::SinkStatusJson;
use admin_api::upstream::WriterStatusJson;
use dead_letters::DeadLetterService;
use eventlog::EventLog;
use ledger::{LedgerRow, SinkRow};
use text::{OperatorCommand, counted};

/// The page of the console that shows outcomes of events.
const OVERVIEW: &str = "overview";

/// What needs an operator, of one moment.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    /// Because of these the process is unhealthy.
    unhealthy: Vec<FindingJson>,
    /// What an operator should check although the process is healthy.
    other: Vec<FindingJson>,
}

impl Problems {
    /// Those of all roles.
    pub(crate) fn of_process(not_ready: Option<&str>, sinks: &[SinkStatusJson]) -> Self {
        let not_ready =
            not_ready.map(|reason| error("not_ready", format!("the process is not ready: {reason}"), "health"));
        let sinks = sinks.iter().filter_map(SinkStatusJson::problem);
        Self { unhealthy: not_ready.into_iter().chain(sinks).collect(), other: Vec::new() }
    }

    /// A writer registers in etcd, and isn't registered.
    #[must_use]
    pub(crate) fn with_unregistered(mut self) -> Self {
        let text = "the writer is not registered in etcd: check etcd and its settings";
        self.unhealthy.push(error("unregistered", text.into(), "health"));
        self
    }

    /// Those of a server or a gateway.
    #[must_use]
    pub(crate) fn with_events(
        mut self,
        (log, dead): (&EventLog, &DeadLetterService),
        rows: &[LedgerRow],
        sinks: &[SinkStatusJson],
        writers: &[WriterStatusJson],
    ) -> Self {
        let has_lost = !log.losses().open_ones().is_empty() || dead.lost().iter().any(|(_, lost)| *lost > 0);
        self.unhealthy.extend(has_lost.then(lost));
        self.unhealthy.extend(writers.iter().filter_map(WriterStatusJson::problem));
        self.other.extend(rows.iter().flat_map(|row| row.sinks.iter().filter_map(|route| miscounted(row, route))));
        self.other.extend(sinks.iter().filter_map(SinkStatusJson::dead_letters));
        self
    }

    /// The sentences of those that make the process unhealthy, the worst first.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let mut unhealthy: Vec<_> = self.unhealthy.iter().collect();
        unhealthy.sort_by_key(|problem| rank(&problem.code));
        unhealthy.into_iter().map(|problem| problem.text.clone()).collect()
    }

    /// All, the worst first.
    pub(crate) fn all(self) -> Vec<FindingJson> {
        let mut all: Vec<_> = self.unhealthy.into_iter().chain(self.other).collect();
        all.sort_by_key(|problem| (Reverse(problem.level), rank(&problem.code)));
        all
    }
}

/// The ledger's row of a route.
pub(crate) fn ledger_row(row: &LedgerRow, route: &SinkRow) -> LedgerRowJson {
    LedgerRowJson {
        r#type: row.type_name.to_string(),
        sink: route.sink.to_string(),
        accepted: row.accepted,
        stored: route.stored,
        dead: route.dead,
        skipped: route.skipped,
        lost: route.lost,
        pending: route.pending,
        adds_up: row.accepted == route.stored + route.dead + route.skipped + route.lost + route.pending,
    }
}

fn error(code: &str, text: String, page: &str) -> FindingJson {
    FindingJson { code: code.into(), level: FindingLevel::Error, since: String::new(), text, page: Some(page.into()) }
}

fn lost() -> FindingJson {
    let [verify, accept] = [OperatorCommand::JournalVerify, OperatorCommand::JournalAcceptLoss];
    let text = format!(
        "events or dead letters are lost: once the server is stopped, {verify} shows where, and {accept} accepts it"
    );
    error("lost", text, OVERVIEW)
}

fn miscounted(row: &LedgerRow, route: &SinkRow) -> Option<FindingJson> {
    let LedgerRowJson { r#type, sink, accepted, stored, dead, skipped, lost, pending, adds_up } =
        ledger_row(row, route);
    let text = format!(
        "BUG: {} of type {type} are not all accounted for in sink {sink}: {stored} stored, {dead} dead, {skipped} \
         skipped, {lost} lost, {pending} pending. Report this",
        counted(accepted, "accepted event")
    );
    (!adds_up).then(|| error("ledger", text, OVERVIEW))
}

/// Smaller is worse, among problems of one level.
fn rank(code: &str) -> usize {
    const WORST_FIRST: [&str; 9] = [
        "not_ready",
        "unregistered",
        "lost",
        "ledger",
        "sink_stopped",
        "sink_failing",
        "sink_waiting",
        "sink_removed",
        "writer_ejected",
    ];
    WORST_FIRST.iter().position(|known| *known == code).unwrap_or(WORST_FIRST.len())
}

#[cfg(test)]
mod tests {
    use admin_api::route::LastDeadJson;
    use admin_api::status::BacklogJson;

    use super::*;

    fn sink(name: &str, state: &str, backlog: BacklogJson) -> SinkStatusJson {
        SinkStatusJson {
            sink: name.into(),
            state: state.into(),
            reason: Some("refused".into()),
            since: Some("2026-11-26T10:00:02Z".into()),
            backlog: Some(backlog),
        }
    }

    fn of(sinks: &[SinkStatusJson]) -> Problems {
        let mut problems = Problems::of_process(Some("the disk is full"), sinks);
        problems.other.extend(sinks.iter().filter_map(SinkStatusJson::dead_letters));
        problems
    }

    #[test]
    fn problems_are_sorted_and_dead_letters_are_healthy() {
        let last_dead = Some(LastDeadJson { at: "2026-11-26T10:04:00Z".into(), reason: "410 Gone".into() });
        let held = BacklogJson { dead_letters: 118, last_dead, ..BacklogJson::default() };
        let pending = BacklogJson { pending: 1, ..BacklogJson::default() };
        let sinks = [
            sink("gone", "removed", pending),
            sink("search", "waiting", BacklogJson::default()),
            sink("hook", "active", held),
            sink("db", "stopped", BacklogJson::default()),
        ];
        let sentences = of(&sinks).sentences();
        assert_eq!(sentences.len(), 4, "{sentences:?}");
        let all = of(&sinks).all();
        let codes: Vec<_> = all.iter().map(|problem| (problem.code.as_str(), problem.page.as_deref())).collect();
        let expected = [
            ("not_ready", Some("health")),
            ("sink_stopped", Some("sinks/db")),
            ("sink_waiting", Some("sinks/search")),
            ("sink_removed", Some("sinks/gone")),
            ("dead_letters", Some("dead?sink=hook")),
        ];
        assert_eq!(codes, expected);
        let dead = all.last().unwrap();
        assert_eq!((dead.level, dead.since.as_str()), (FindingLevel::Warning, "2026-11-26T10:04:00Z"));
        assert_eq!(dead.text, "118 dead letters of sink hook: 410 Gone");
        assert_eq!(
            (all[2].text.as_str(), all[2].since.as_str()),
            ("sink search waits: refused", "2026-11-26T10:00:02Z")
        );
    }

    #[test]
    fn row_is_a_problem_only_if_it_is_wrong() {
        let route =
            |stored| SinkRow { sink: "db".into(), stored, dead: 1, skipped: 0, lost: 0, pending: 2, removed: false };
        let row = LedgerRow { type_name: "orders".parse().unwrap(), derived: false, accepted: 10, sinks: Vec::new() };
        assert_eq!(miscounted(&row, &route(7)), None);
        assert_eq!(miscounted(&row, &route(6)).map(|problem| problem.code), Some("ledger".to_owned()));
    }
}
