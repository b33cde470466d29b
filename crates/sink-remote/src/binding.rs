//! Which store a sink of a gateway is bound to, and which writers don't reach it.
//!
//! A gateway binds the sink to the first store that it finds: to the store's mark, which delivery saves in the ledger, and to the writers'
//! description of their sink, which an operator may change in all writers. Each request names both. If either differs, the writer does
//! nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::request::Builder;
use text::OperatorCommand;
use tokio::time::Instant;

use sink::{Mark, Reason, SinkError};
use writer_protocol::{SinkInfo, wire};

/// The pause before an unused writer is tried again: the operator may have corrected it.
const REFUSED_FOR: Duration = Duration::from_secs(10);

/// The store and layout that a sink is bound to. The sink's handles share it.
#[derive(Debug)]
pub(crate) struct Binding {
    /// The sink's name in the writers' configuration.
    sink: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The mark of the store.
    mark: Option<Mark>,
    /// The writers' description of their sink.
    bound: Option<Bound>,
    /// Writers with another store or another sink.
    refused: BTreeMap<String, Refused>,
}

/// A writer that isn't used.
#[derive(Debug)]
struct Refused {
    since: Instant,
    reason: Reason,
    /// Whether it reaches another store.
    has_other_store: bool,
}

impl Refused {
    fn now(reason: Reason, has_other_store: bool) -> Self {
        Self { since: Instant::now(), reason, has_other_store }
    }
}

#[derive(Debug)]
struct Bound {
    /// The writer that gave the description.
    server: String,
    info: SinkInfo,
    fingerprint: String,
}

impl Binding {
    pub(super) fn new(sink: &str) -> Self {
        Self { sink: sink.to_owned(), state: Mutex::default() }
    }

    fn held(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts no other store than the one with this mark.
    pub(crate) fn expect(&self, mark: Mark) {
        let mut state = self.held();
        if state.mark != Some(mark) {
            *state = State { mark: Some(mark), ..State::default() };
        }
    }

    /// Accepts any store: the sink is bound to the next one that is found.
    pub(crate) fn unbind(&self) {
        *self.held() = State::default();
    }

    /// The mark of the store.
    pub(crate) fn mark(&self) -> Option<Mark> {
        self.held().mark
    }

    /// Whether a writer reaches another store than the one that the sink is bound to.
    pub(crate) fn has_other_store(&self) -> bool {
        self.held().refused.values().any(|refused| refused.has_other_store)
    }

    pub(super) fn is_bound(&self) -> bool {
        self.held().bound.is_some()
    }

    /// A warning for the operator: what the store may lose, and which writers aren't used.
    pub(crate) fn warning(&self) -> Option<Reason> {
        let state = self.held();
        let of_store = state.bound.as_ref().and_then(|bound| bound.info.warning.clone());
        let of_writers = state.refused.values().map(|refused| format!("not used: {}", refused.reason));
        let all: Vec<String> = of_store.into_iter().chain(of_writers).collect();
        (!all.is_empty()).then(|| all.join("; ").into())
    }

    /// Adds the mark and the layout that the sink is bound to.
    pub(super) fn headers(&self, mut request: Builder) -> Builder {
        let state = self.held();
        if let Some(mark) = state.mark {
            request = request.header(wire::MARK, mark.to_string());
        }
        if let Some(bound) = &state.bound {
            request = request.header(wire::LAYOUT, &bound.fingerprint);
        }
        request
    }

    /// Whether the writer was put last within `REFUSED_FOR`.
    pub(super) fn is_refused(&self, server: &str) -> bool {
        self.held().refused.get(server).is_some_and(|refused| refused.since.elapsed() < REFUSED_FOR)
    }

    /// The writer has answered as the bound one would.
    pub(super) fn accept(&self, server: &str) {
        self.held().refused.remove(server);
    }

    /// The writer's answer says that its store or sink differs. Returns why it isn't used.
    pub(super) fn refuse(&self, server: &str, info: &SinkInfo) -> Reason {
        self.refuse_in(&mut self.held(), server, info)
    }

    fn refuse_in(&self, state: &mut State, server: &str, info: &SinkInfo) -> Reason {
        let sink = &self.sink;
        let has_other_store = state.mark.is_some() && info.mark() != state.mark;
        let reason: Reason = match (state.mark, &state.bound) {
            (Some(mark), _) if has_other_store => {
                let found = info.mark.as_deref().unwrap_or("none");
                format!(
                    "writer {server} stores the events of its sink `{sink}` in another store (mark {found}) than before (mark {mark}): \
                     configure the previous store. If the new one replaces it permanently: {}",
                    OperatorCommand::RouteAccept(sink)
                )
            }
            (_, Some(bound)) if bound.server != server => self
                .difference((&bound.server, &bound.info), (server, info))
                .unwrap_or_else(|| format!("writer {server} changed its sink `{sink}`: the gateway retries")),
            (_, Some(_)) => format!(
                "writer {server} was restarted with another sink `{sink}`: the gateway uses it when all writers of the upstream have the same sink"
            ),
            (_, None) => format!("writer {server} has another sink `{sink}` than the gateway expects: the gateway retries"),
        }
        .into();
        state.refused.insert(server.to_owned(), Refused::now(reason.clone(), has_other_store));
        reason
    }

    /// The difference between two writers, as a message.
    fn difference(&self, one: (&str, &SinkInfo), other: (&str, &SinkInfo)) -> Option<String> {
        let sink = &self.sink;
        if let Some((name, here, there)) = one.1.difference(other.1) {
            return Some(format!(
                "writers {} and {} differ in `{name}` of their sink `{sink}`: {here} and {there}. Give both the same configuration",
                one.0, other.0
            ));
        }
        (one.1.mark != other.1.mark).then(|| {
            let mark = |info: &SinkInfo| info.mark.clone().unwrap_or_else(|| "none".to_owned());
            format!(
                "writers {} and {} store the events of their sink `{sink}` in two stores (marks {} and {}): let both use one store, or \
                 remove one of them from the upstream",
                one.0,
                other.0,
                mark(one.1),
                mark(other.1)
            )
        })
    }

    /// Puts writers whose sink is misconfigured last.
    pub(super) fn pass_over(&self, failures: Vec<(String, SinkError)>) {
        let mut state = self.held();
        for (server, error) in failures {
            if let SinkError::Misconfigured(reason) = error {
                let reason = format!("writer {server}: {reason}").into();
                state.refused.insert(server, Refused::now(reason, false));
            }
        }
    }

    /// Binds the sink, given the answers of all writers that answered.
    ///
    /// # Errors
    /// None of them reaches the store, or they disagree and the sink isn't bound yet.
    pub(super) fn bind(&self, answers: Vec<(String, SinkInfo)>) -> Result<(), SinkError> {
        let mut state = self.held();
        state.refused.clear();
        let mut wrong = None;
        let mut agreeing: Vec<(String, SinkInfo)> = Vec::new();
        for (server, info) in answers {
            if state.mark.is_some() && info.mark() != state.mark {
                wrong = Some(self.refuse_in(&mut state, &server, &info));
            } else {
                agreeing.push((server, info));
            }
        }
        let as_before = |(_, info): &(String, SinkInfo)| {
            state.bound.as_ref().is_some_and(|bound| bound.info.difference(info).is_none())
        };
        // A writer with a changed sink answers `differs` when it is used.
        if let Some(at) = agreeing.iter().position(as_before) {
            agreeing = vec![agreeing.swap_remove(at)];
        }
        let mut agreeing = agreeing.into_iter();
        let Some((server, info)) = agreeing.next() else {
            let reason = wrong
                .unwrap_or_else(|| "no writer describes its sink: check that the writers of the upstream run".into());
            return Err(SinkError::Misconfigured(reason));
        };
        for (other, of_other) in agreeing {
            if let Some(difference) = self.difference((&server, &info), (&other, &of_other)) {
                return Err(SinkError::Misconfigured(difference.into()));
            }
        }
        let fingerprint = info.fingerprint();
        state.mark = info.mark();
        state.bound = Some(Bound { server, info, fingerprint });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(mark: u8, table: &str) -> SinkInfo {
        SinkInfo {
            kind: "postgres".into(),
            reads: false,
            warning: None,
            mark: Some(Mark([mark; 16]).to_string()),
            parts: BTreeMap::from([("table".to_owned(), table.to_owned())]),
            objects: None,
        }
    }

    fn bind(binding: &Binding, answers: &[(&str, SinkInfo)]) -> Result<(), String> {
        let answers = answers.iter().map(|(server, info)| ((*server).to_owned(), info.clone())).collect();
        binding.bind(answers).map_err(|error| error.to_string())
    }

    fn bound(binding: &Binding) -> Option<SinkInfo> {
        binding.held().bound.as_ref().map(|bound| bound.info.clone())
    }

    #[test]
    fn unbound_sink_accepts_no_differing_writers() {
        let binding = Binding::new("warehouse");
        let two_stores = bind(&binding, &[("a", info(1, "t")), ("b", info(2, "t"))]).unwrap_err();
        assert!(
            two_stores.contains("writers a and b store the events of their sink `warehouse` in two stores"),
            "{two_stores}"
        );
        let two_tables = bind(&binding, &[("a", info(1, "t")), ("b", info(1, "u"))]).unwrap_err();
        assert!(
            two_tables.contains("writers a and b differ in `table` of their sink `warehouse`: t and u"),
            "{two_tables}"
        );
        assert!(!binding.is_bound() && binding.mark().is_none());
        bind(&binding, &[("a", info(1, "t")), ("b", info(1, "t"))]).unwrap();
        assert_eq!(binding.mark(), Some(Mark([1; 16])));
    }

    #[test]
    fn known_store_decides_between_writers() {
        let binding = Binding::new("warehouse");
        binding.expect(Mark([2; 16]));
        bind(&binding, &[("a", info(1, "t")), ("b", info(2, "t"))]).unwrap();
        assert_eq!(bound(&binding), Some(info(2, "t")));
        assert!(binding.is_refused("a") && !binding.is_refused("b"));
        let warning = binding.warning().unwrap();
        assert!(warning.contains("writer a") && warning.contains("forebay route accept"), "{warning}");
        let none = bind(&binding, &[("a", info(1, "t"))]).unwrap_err();
        assert!(none.contains("writer a stores the events of its sink `warehouse` in another store"), "{none}");
        binding.unbind();
        bind(&binding, &[("a", info(1, "t"))]).unwrap();
        assert_eq!(binding.mark(), Some(Mark([1; 16])));
    }

    #[test]
    fn writers_change_their_sink_one_by_one() {
        let binding = Binding::new("warehouse");
        bind(&binding, &[("a", info(1, "t")), ("b", info(1, "t"))]).unwrap();
        // The first one was changed: the other one stays in use.
        let refused = binding.refuse("a", &info(1, "u"));
        assert!(refused.contains("writer a was restarted with another sink `warehouse`"), "{refused}");
        bind(&binding, &[("a", info(1, "u")), ("b", info(1, "t"))]).unwrap();
        assert_eq!(bound(&binding), Some(info(1, "t")));
        bind(&binding, &[("a", info(1, "u")), ("b", info(1, "u"))]).unwrap();
        assert_eq!(bound(&binding), Some(info(1, "u")));
        binding.accept("a");
        assert!(!binding.is_refused("a"));
    }
}
