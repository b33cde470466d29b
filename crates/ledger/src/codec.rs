//! The ledger as it is saved: lines of words, one fact each.
//!
//! ```text
//! forebay-ledger 1                     the version
//! counted 120,80                       by shard: the last sequence that `accepted` counts
//! accepted access 200                  events of a type
//! filtered access 3 dedupe 12          type, step, what it does, events that it took out
//! route access local,search            a type's own routes
//! others local                         the routes of all other types
//! condition access search status>=500  a condition of one of these routes; of all other types with `*` as its type
//! counted-lost 3                       what was known to be lost when lost events were counted last; left out where that is 0
//! derived access.hits                  a type whose events are results of an aggregate
//! sink local                           what follows, up to the next sink, is this one's
//! dead 12                              its journal of dead letters is counted up to here; left out where that is 0
//! claims 5f…,a0…                       claims of this data directory's processes that its store may hold, the newest last
//! mark 3b…                             the mark of the store that the sink of a writer is bound to; left out where there is none
//! lane 0 0 118 0 -                     shard, start, cursor, lost positions, `ahead` or `-`
//! accept 0 again                       shard: the operator accepts what its store has, `again` or `-`
//! unheard 0 118                        shard, where its journal ended at the first start since which the store hasn't told where it stands
//! outcome 0 access 117 1 0             shard, type, stored, dead, skipped
//! pair access 0 - - -                  type, base, from by shard; of a closed route: accepted, until by shard, `passed` or nothing
//! pair-lost access 30                  events of the route that are lost; left out where that is 0
//! gap access 7,3 9,4                   behind the first and up to the second sequences by shard its route was out
//! when access 9,4 status>=500          its condition behind these sequences by shard, `-` for none
//! ```
//!
//! A list is joined by commas, an empty one is `-`. A condition goes on to the end of its line. Checksum and generations are the state file's.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::str::{FromStr, SplitWhitespace};

use event::TypeName;
use eventlog::FilterStep;
use sink::Claim;

use crate::condition::{Term, read, written};
use crate::dispute::Accept;
use crate::outcomes::OutcomeCounts;
use crate::route_state::{Closed, Gap, RouteState};
use crate::routes::SinkName;
use crate::state::{LaneProgress, LedgerState, SinkProgress};

const HEADING: &str = "forebay-ledger 1";
/// What stands for all types without routes of their own.
const OTHERS: &str = "*";

/// Everything that is saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// By shard the last position that is counted as accepted.
    pub counted_up_to: Vec<u64>,
    pub(crate) accepted: Vec<(TypeName, u64)>,
    pub(crate) filtered: Vec<(FilterStep, u64)>,
    /// The routes and the progress of each sink.
    pub state: LedgerState,
}

impl Document {
    /// The text of the file.
    pub fn encode(&self) -> String {
        let mut text = format!("{HEADING}\ncounted {}\n", list(&self.counted_up_to));
        // Writing to a string can't fail.
        let _ = self.encode_facts(&mut text);
        text
    }

    fn encode_facts(&self, text: &mut String) -> std::fmt::Result {
        for (name, events) in &self.accepted {
            writeln!(text, "accepted {name} {events}")?;
        }
        for (FilterStep { type_name, step, operation }, events) in &self.filtered {
            writeln!(text, "filtered {type_name} {step} {operation} {events}")?;
        }
        for (name, sinks) in self.state.routes.named() {
            writeln!(text, "route {name} {}", list(sinks))?;
        }
        writeln!(text, "others {}", list(self.state.routes.others()))?;
        for (of, sink, condition) in self.state.routes.conditions() {
            let of = of.map_or(OTHERS, TypeName::as_str);
            writeln!(text, "condition {of} {sink} {}", written(Some(condition)))?;
        }
        if self.state.counted_lost > 0 {
            writeln!(text, "counted-lost {}", self.state.counted_lost)?;
        }
        for name in &self.state.derived {
            writeln!(text, "derived {name}")?;
        }
        for (name, sink) in &self.state.sinks {
            writeln!(text, "sink {name}")?;
            encode_sink(sink, text)?;
        }
        Ok(())
    }

    /// Reads what [`Document::encode`] wrote; else the number of the line that makes no sense, from 1.
    pub(crate) fn decode(text: &str) -> Result<Self, usize> {
        let mut lines = text.lines();
        if lines.next() != Some(HEADING) {
            return Err(1);
        }
        let mut document = Self::default();
        let mut sink = None;
        for (index, line) in lines.enumerate() {
            document.decode_line(line, &mut sink).ok_or(index + 2)?;
        }
        Ok(document)
    }

    fn decode_line(&mut self, line: &str, sink: &mut Option<SinkName>) -> Option<()> {
        if let Some(rest) = line.strip_prefix("condition ") {
            return self.decode_condition(rest);
        }
        if let Some(rest) = line.strip_prefix("when ") {
            return decode_term(self.state.sinks.get_mut(sink.as_ref()?)?, rest);
        }
        let mut words = line.split_whitespace();
        match words.next()? {
            "counted" => self.counted_up_to = numbers(words.next()?)?,
            "accepted" => self.accepted.push((type_name(&mut words)?, number(&mut words)?)),
            "filtered" => {
                let (type_name, step) = (type_name(&mut words)?, word(&mut words)?);
                let step = FilterStep { type_name, step, operation: words.next()?.to_owned().into() };
                self.filtered.push((step, number(&mut words)?));
            }
            "route" => {
                let name = type_name(&mut words)?;
                self.state.routes = std::mem::take(&mut self.state.routes).with(name, names(words.next()?));
            }
            "others" => {
                self.state.routes = std::mem::take(&mut self.state.routes).with_others(names(words.next()?));
            }
            "counted-lost" => self.state.counted_lost = number(&mut words)?,
            "derived" => drop(self.state.derived.insert(type_name(&mut words)?)),
            "sink" => {
                let name: SinkName = words.next()?.into();
                self.state.sinks.insert(name.clone(), SinkProgress::default());
                *sink = Some(name);
            }
            fact => decode_sink_fact(self.state.sinks.get_mut(sink.as_ref()?)?, fact, &mut words)?,
        }
        words.next().is_none().then_some(())
    }

    fn decode_condition(&mut self, rest: &str) -> Option<()> {
        let mut words = rest.splitn(3, ' ');
        let of = match words.next()? {
            OTHERS => None,
            name => Some(TypeName::new(name).ok()?),
        };
        let (sink, condition) = (words.next()?.into(), read(words.next()?)??);
        self.state.routes = std::mem::take(&mut self.state.routes).when(of, sink, condition);
        Some(())
    }
}

fn decode_term(sink: &mut SinkProgress, rest: &str) -> Option<()> {
    let mut words = rest.splitn(3, ' ');
    let route = sink.routes.get_mut(&TypeName::new(words.next()?).ok()?)?;
    route.terms.0.push(Term { after: numbers(words.next()?)?, when: read(words.next()?)? });
    Some(())
}

fn encode_sink(sink: &SinkProgress, text: &mut String) -> std::fmt::Result {
    if sink.dead_up_to > 0 {
        writeln!(text, "dead {}", sink.dead_up_to)?;
    }
    if !sink.claims.is_empty() {
        writeln!(text, "claims {}", list(&sink.claims))?;
    }
    if let Some(mark) = sink.mark {
        writeln!(text, "mark {mark}")?;
    }
    for (shard, lane) in sink.lanes.iter().enumerate() {
        let ahead = if lane.ahead { "ahead" } else { "-" };
        writeln!(text, "lane {shard} {} {} {} {ahead}", lane.start, lane.cursor, lane.lost)?;
        if let Some(end) = lane.unconfirmed_since {
            writeln!(text, "unheard {shard} {end}")?;
        }
        if let Some(Accept { again }) = lane.accept {
            writeln!(text, "accept {shard} {}", if again { "again" } else { "-" })?;
        }
        for (name, OutcomeCounts { stored, dead, skipped }) in &lane.outcomes {
            writeln!(text, "outcome {shard} {name} {stored} {dead} {skipped}")?;
        }
    }
    for (name, route) in &sink.routes {
        write!(text, "pair {name} {} {}", route.base, list(&route.from))?;
        match &route.closed {
            Some(closed) => {
                let passed = if closed.passed { " passed" } else { "" };
                writeln!(text, " {} {}{passed}", closed.accepted, list(&closed.until))?;
            }
            None => writeln!(text, " - -")?,
        }
        if route.lost > 0 {
            writeln!(text, "pair-lost {name} {}", route.lost)?;
        }
        for Gap { after, until } in &route.gaps {
            writeln!(text, "gap {name} {} {}", list(after), list(until))?;
        }
        for Term { after, when } in &route.terms.0 {
            writeln!(text, "when {name} {} {}", list(after), written(when.as_ref()))?;
        }
    }
    Ok(())
}

fn decode_sink_fact(sink: &mut SinkProgress, fact: &str, words: &mut SplitWhitespace<'_>) -> Option<()> {
    match fact {
        "dead" => sink.dead_up_to = number(words)?,
        "claims" => {
            let claims = words.next()?.split(',').map(|claim| claim.parse::<Claim>().ok());
            sink.claims = claims.collect::<Option<_>>()?;
        }
        "mark" => sink.mark = Some(word(words)?),
        "accept" => {
            let lane = lane(sink, words)?;
            lane.accept = Some(Accept { again: words.next()? == "again" });
        }
        "lane" => {
            let shard: usize = word(words)?;
            let (start, cursor, lost) = (number(words)?, number(words)?, number(words)?);
            let ahead = words.next()? == "ahead";
            if shard != sink.lanes.len() {
                return None;
            }
            sink.lanes.push(LaneProgress { start, cursor, lost, ahead, ..LaneProgress::default() });
        }
        "unheard" => {
            let lane = lane(sink, words)?;
            lane.unconfirmed_since = Some(number(words)?);
        }
        "outcome" => {
            let lane = lane(sink, words)?;
            let name = type_name(words)?;
            let outcomes = OutcomeCounts { stored: number(words)?, dead: number(words)?, skipped: number(words)? };
            lane.outcomes.insert(name, outcomes);
        }
        "pair" => {
            let (name, base, from) = (type_name(words)?, number(words)?, numbers(words.next()?)?);
            let closed = match words.next()? {
                "-" => None,
                accepted => Some(accepted.parse().ok()?),
            };
            let until = numbers(words.next()?)?;
            let passed = match words.next() {
                None => false,
                Some("passed") => true,
                Some(_) => return None,
            };
            let closed = closed.map(|accepted| Closed { until, accepted, passed });
            sink.routes.insert(name, RouteState { base, from, closed, ..RouteState::default() });
        }
        "pair-lost" => {
            let route = sink.routes.get_mut(&type_name(words)?)?;
            route.lost = number(words)?;
        }
        "gap" => {
            let route = sink.routes.get_mut(&type_name(words)?)?;
            route.gaps.push(Gap { after: numbers(words.next()?)?, until: numbers(words.next()?)? });
        }
        _ => return None,
    }
    Some(())
}

fn lane<'s>(sink: &'s mut SinkProgress, words: &mut SplitWhitespace<'_>) -> Option<&'s mut LaneProgress> {
    sink.lanes.get_mut(word::<usize>(words)?)
}

fn list<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let words: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    if words.is_empty() { "-".into() } else { words.join(",") }
}

fn numbers(word: &str) -> Option<Vec<u64>> {
    if word == "-" { Some(Vec::new()) } else { word.split(',').map(|number| number.parse().ok()).collect() }
}

fn names(word: &str) -> BTreeSet<SinkName> {
    word.split(',').filter(|name| *name != "-").map(SinkName::from).collect()
}

fn word<T: FromStr>(words: &mut SplitWhitespace<'_>) -> Option<T> {
    words.next()?.parse().ok()
}

fn number(words: &mut SplitWhitespace<'_>) -> Option<u64> {
    word(words)
}

fn type_name(words: &mut SplitWhitespace<'_>) -> Option<TypeName> {
    TypeName::new(words.next()?).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::condition::Terms;

    fn name(text: &str) -> TypeName {
        TypeName::new(text).unwrap()
    }

    fn full() -> Document {
        let outcomes = OutcomeCounts { stored: 7, dead: 1, skipped: 2 };
        let lane = LaneProgress {
            start: 1,
            cursor: 12,
            lost: 3,
            ahead: true,
            unconfirmed_since: Some(40),
            accept: Some(Accept { again: true }),
            outcomes: BTreeMap::from([(name("a.b"), outcomes)]),
            ..LaneProgress::default()
        };
        let condition = |text: &str| text.parse::<crate::Condition>().unwrap();
        let terms = Terms(vec![
            Term { after: Vec::new(), when: Some(condition("a  ==\n\r '\\\\n'")) },
            Term { after: vec![3, 4], when: None },
        ]);
        let closed = Closed { until: vec![9, 0], accepted: 11, passed: true };
        let gone = Closed { passed: false, ..closed.clone() };
        let gaps = vec![Gap { after: Vec::new(), until: vec![2, 1] }, Gap { after: vec![3, 4], until: vec![5, 4] }];
        let routes = BTreeMap::from([
            (name("a.b"), RouteState { base: 5, lost: 8, from: vec![1, 2], closed: Some(closed), terms, gaps }),
            (name("c"), RouteState::default()),
            (name("d"), RouteState { closed: Some(gone), ..RouteState::default() }),
        ]);
        let lanes = vec![lane, LaneProgress { accept: Some(Accept { again: false }), ..LaneProgress::default() }];
        let claims = vec![Claim([0; 16]), Claim([0xf1; 16])];
        let mark = Some(sink::Mark([0x3b; 16]));
        let sink = SinkProgress { lanes, routes, dead_up_to: 6, claims, mark, configured: false };
        let routes = crate::Routes::new().with(name("c"), []).with(name("a.b"), ["x".into(), "y".into()]);
        let routes =
            routes.when(None, "y".into(), condition("b")).when(Some(name("a.b")), "x".into(), condition("c != '-'"));
        let sinks = BTreeMap::from([("x".into(), sink), ("y".into(), SinkProgress::default())]);
        let derived = [name("c"), name("d.e")].into();
        let state = LedgerState { routes: routes.with_others(["y".into()]), sinks, derived, counted_lost: 2 };
        let filtered = vec![(FilterStep { type_name: name("c"), step: 3, operation: "dedupe".into() }, 12)];
        Document { counted_up_to: vec![12, 0], accepted: vec![(name("a.b"), 20), (name("c"), 0)], filtered, state }
    }

    #[test]
    fn what_is_saved_is_loaded() {
        for document in [full(), Document::default()] {
            assert_eq!(Document::decode(&document.encode()), Ok(document));
        }
    }

    #[test]
    fn a_line_that_makes_no_sense_is_named() {
        let text = full().encode();
        assert_eq!(Document::decode(&text.replacen("ledger 1", "ledger 2", 1)), Err(1));
        assert_eq!(Document::decode(&text.replacen("accepted a.b 20", "accepted a.b -20", 1)), Err(3));
        assert_eq!(Document::decode(&text.replacen("accepted a.b 20", "accepted a.b 20 1", 1)), Err(3));
        assert_eq!(Document::decode(&format!("{text}lane 1 0 0 0 -\n")), Err(text.lines().count() + 1));
    }
}
