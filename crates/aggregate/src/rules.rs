//! The definition of an aggregate, and its compiled form.

use std::time::Duration;

use event::TypeName;
use limits::{
    AGGREGATE_AHEAD, AGGREGATE_BYTES, AGGREGATE_BYTES_MIN, AGGREGATE_GROUP_BY_MAX, AGGREGATE_IDLE_TIMEOUT,
    AGGREGATE_LATENESS, AGGREGATE_LATENESS_MAX, AGGREGATE_MEASURES_MAX, AGGREGATE_WINDOWS_MAX,
};
use xxhash_rust::xxh3::xxh3_64;

use super::accumulator::Kind;
use super::extract::Extractor;
use super::measure::{Measure, Read};
use super::window::{Span, microseconds, starts};
use json::JsonPointer;
use timestamp::TimeRule;

/// Members of a result that no measure can be called.
const RESERVED: [&str; 9] =
    ["window", "group", "overflow", "part", "withdrawn", "origin", "origins", "revision", "state"];
/// This many past windows are remembered for parts.
pub(super) const PART_WINDOWS: i64 = 60;

/// Which time decides the window of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeBasis {
    /// The event's own time, or its receive time if it has none.
    #[default]
    Event,
    /// When it was received.
    Received,
}

/// What happens to an event whose window is over, including lateness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Late {
    /// It is counted, and is in no result.
    #[default]
    Count,
    /// It goes to a part of the window with separate results.
    Part,
}

/// When the result of a window is emitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emit {
    /// At the window's end, and again with a higher revision after a late event.
    #[default]
    Close,
    /// Once, when no event can arrive any longer.
    Final,
}

/// The definition of an aggregate. Settings that are not set have the defaults of `docs/reference/aggregates.md`.
#[derive(Clone, Debug, Default)]
pub struct Definition {
    /// `1m`, `5m every 1m` or `session 30m`.
    pub window: String,
    /// Which time counts.
    pub time: TimeBasis,
    /// How to read an event's own time, for events that have none yet.
    pub event_time: Option<TimeRule>,
    /// JSON pointers.
    pub group_by: Vec<String>,
    /// Names with measures such as `sum:/bytes`, in the order of the result.
    pub measures: Vec<(String, String)>,
    /// How late an event may be.
    pub lateness: Option<Duration>,
    /// How far ahead of its receipt an event may be dated.
    pub ahead: Option<Duration>,
    /// What happens to a later event.
    pub late: Late,
    /// When results are emitted.
    pub emit: Emit,
    /// How often results are emitted before a window's end.
    pub early: Option<Duration>,
    /// After how long a shard without events doesn't delay the others. The setting is `idle_timeout`: a fingerprint has the field's name.
    pub quiet: Option<Duration>,
    /// Bytes for groups.
    pub memory: Option<usize>,
    /// Whether results carry the state that is needed to merge them with those of other origins.
    pub state: bool,
}

/// What is wrong with a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {message}")]
pub struct InvalidDefinition {
    /// Its name, such as `group_by` or `measures.requests`.
    pub setting: String,
    /// What is wrong, and the correction.
    pub message: String,
}

/// What a group keeps: a kind of accumulator for the values at a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) kind: Kind,
    pub(super) pointer: usize,
}

/// A measure with its name, and the slot of its accumulator.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) read: Read,
    pub(super) slot: Option<usize>,
}

/// An aggregate, compiled. Lengths are in microseconds.
#[derive(Clone, Debug)]
pub struct AggregateRules {
    pub(super) name: TypeName,
    pub(super) span: Span,
    pub(super) time: TimeBasis,
    event_time: Option<TimeRule>,
    pub(super) group_by: Vec<String>,
    /// The indices of the groups' values among the values that are read.
    pub(super) group_pointers: Vec<usize>,
    pub(super) measures: Vec<Named>,
    pub(super) slots: Vec<Slot>,
    pub(super) reading: Extractor,
    pub(super) lateness: i64,
    pub(super) ahead: i64,
    pub(super) late: Late,
    pub(super) emit: Emit,
    pub(super) early: Option<i64>,
    pub(super) idle_timeout: i64,
    /// Bytes for the groups of all windows.
    memory_bytes: usize,
    /// Whether the definition sets it.
    has_own_memory: bool,
    windows_open: usize,
    /// Bytes for the groups of one window, or of all sessions.
    pub(super) window_bytes: usize,
    pub(super) state: bool,
    /// Differs if the definition differs: a changed aggregate is a new one.
    pub(super) fingerprint: u64,
}

impl AggregateRules {
    /// Compiles a definition. `name` is the type of the results.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn new(name: TypeName, definition: &Definition) -> Result<Self, Vec<InvalidDefinition>> {
        let mut draft = Draft::default();
        let span = draft.read("window", Span::parse(&definition.window));
        let group_pointers = draft.group_by(&definition.group_by);
        let measures = draft.measures(&definition.measures);
        let default = if definition.time == TimeBasis::Event { AGGREGATE_LATENESS } else { Duration::ZERO };
        let lateness = draft.length("lateness", definition.lateness.unwrap_or(default));
        let ahead = draft.length("ahead", definition.ahead.unwrap_or(AGGREGATE_AHEAD));
        let idle_timeout = draft.length("idle_timeout", definition.quiet.unwrap_or(AGGREGATE_IDLE_TIMEOUT));
        let early = definition.early.map(|early| draft.length("early", early)).filter(|early| *early > 0);
        let memory = definition.memory.unwrap_or(AGGREGATE_BYTES);
        if memory < AGGREGATE_BYTES_MIN {
            draft.mistake("memory", format!("expected at least {AGGREGATE_BYTES_MIN} bytes, found {memory}"));
        }
        if let Some(span) = span {
            draft.check(definition, span);
            let windows = windows_open(span, lateness, ahead, definition.late);
            if windows > AGGREGATE_WINDOWS_MAX {
                let more = "make the windows longer, or `lateness` and `ahead` shorter";
                let message =
                    format!("{windows} windows could be open, and at most {AGGREGATE_WINDOWS_MAX} are allowed: {more}");
                draft.mistake("window", message);
            }
        }
        let Some(span) = span.filter(|_| draft.mistakes.is_empty()) else { return Err(draft.mistakes) };
        let windows = windows_open(span, lateness, ahead, definition.late).max(1);
        Ok(Self {
            fingerprint: fingerprint(&name, definition),
            name,
            span,
            time: definition.time,
            event_time: definition.event_time.clone(),
            group_by: definition.group_by.clone(),
            group_pointers,
            measures,
            slots: draft.slots,
            reading: draft.reading,
            lateness,
            ahead,
            late: definition.late,
            emit: definition.emit,
            early,
            idle_timeout: if definition.time == TimeBasis::Event { idle_timeout } else { 0 },
            memory_bytes: memory,
            has_own_memory: definition.memory.is_some(),
            windows_open: usize::try_from(windows).unwrap_or(1),
            window_bytes: memory / usize::try_from(windows).unwrap_or(1),
            state: definition.state,
        })
    }

    /// Whether the definition limits the memory of the groups.
    #[must_use]
    pub const fn has_own_memory(&self) -> bool {
        self.has_own_memory
    }

    /// Limits the memory of the groups, unless the definition does.
    pub const fn limit_memory(&mut self, bytes: usize) {
        if !self.has_own_memory {
            self.memory_bytes = bytes;
            self.window_bytes = bytes / self.windows_open;
        }
    }

    /// The type of the results.
    #[must_use]
    pub const fn name(&self) -> &TypeName {
        &self.name
    }

    /// Differs if the definition differs: a changed aggregate is a new one.
    #[must_use]
    pub const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The pointers that it reads, each with its setting: `group_by.0`, `measures.requests`.
    pub fn places(&self) -> impl Iterator<Item = (String, &JsonPointer)> {
        let groups = self.group_pointers.iter().enumerate().map(|(number, at)| (format!("group_by.{number}"), *at));
        let measures = self.measures.iter().filter_map(|named| {
            let slot = self.slots.get(named.slot?)?;
            Some((format!("measures.{}", named.name), slot.pointer))
        });
        groups.chain(measures).map(|(setting, at)| (setting, self.reading.pointer(at)))
    }

    /// The slot in which another kind of accumulator keeps the same values, if a measure needs it.
    pub(super) fn slot_of_kind(&self, slot: usize, kind: Kind) -> Option<usize> {
        let wanted = Slot { kind, pointer: self.slots[slot].pointer };
        self.slots.iter().position(|other| *other == wanted)
    }

    /// The time that the event itself contains at the pointer.
    #[must_use]
    pub fn time_of(&self, payload: &str) -> Option<i64> {
        let rule = self.event_time.as_ref().filter(|_| self.time == TimeBasis::Event)?;
        rule.read(payload).ok().flatten()
    }

    /// The start of the latest window that holds an event: microseconds since 1970, UTC. `None` for sessions, whose windows depend on the
    /// other events.
    #[must_use]
    pub fn window_start(&self, payload: &str, event_time: Option<i64>, received_at: i64) -> Option<i64> {
        let Span::TimeWindows { size, hop } = self.span else { return None };
        let own = || self.time_of(payload).or(event_time).unwrap_or(received_at);
        let time = if self.time == TimeBasis::Event { own() } else { received_at };
        starts(size, hop, time).next()
    }

    /// Bytes for the groups of all windows.
    #[must_use]
    pub const fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Bytes for the groups of one window: its share of the memory, or all of it for sessions.
    #[must_use]
    pub const fn window_bytes(&self) -> usize {
        self.window_bytes
    }
}

/// How many windows can be open: from those that late events may still go to, to those of events that are ahead.
fn windows_open(span: Span, lateness: i64, ahead: i64, late: Late) -> i64 {
    let Span::TimeWindows { size, hop } = span else { return 1 };
    let parts = match late {
        Late::Count => 0,
        // Each window may have one part that accepts events and one that does not any longer.
        Late::Part => 2 * (PART_WINDOWS + lateness / hop + 2),
    };
    (size + lateness + ahead) / hop + 2 + parts
}

/// Everything that distinguishes two definitions. Saved states have it: the names of [`Definition`] and of its fields
/// never change.
fn fingerprint(name: &TypeName, definition: &Definition) -> u64 {
    xxh3_64(format!("{name} {definition:?}").as_bytes())
}

#[derive(Default)]
struct Draft {
    reading: Extractor,
    slots: Vec<Slot>,
    mistakes: Vec<InvalidDefinition>,
}

impl Draft {
    fn mistake(&mut self, setting: &str, message: impl Into<String>) {
        self.mistakes.push(InvalidDefinition { setting: setting.to_owned(), message: message.into() });
    }

    fn read<T>(&mut self, setting: &str, read: Result<T, String>) -> Option<T> {
        read.map_err(|message| self.mistake(setting, message)).ok()
    }

    fn length(&mut self, setting: &str, length: Duration) -> i64 {
        if length > AGGREGATE_LATENESS_MAX {
            let most = humantime::format_duration(AGGREGATE_LATENESS_MAX);
            self.mistake(setting, format!("expected at most {most}"));
        }
        microseconds(length.min(AGGREGATE_LATENESS_MAX))
    }

    fn group_by(&mut self, pointers: &[String]) -> Vec<usize> {
        if pointers.len() > AGGREGATE_GROUP_BY_MAX {
            self.mistake("group_by", format!("expected at most {AGGREGATE_GROUP_BY_MAX} pointers"));
        }
        let mut found = Vec::new();
        for (number, text) in pointers.iter().enumerate() {
            let parsed = text.parse::<JsonPointer>().map_err(|error| format!("`{text}`: {error}"));
            if pointers[..number].contains(text) {
                self.mistake("group_by", format!("`{text}` is listed twice: remove one of them"));
            }
            if let Some(pointer) = self.read("group_by", parsed) {
                found.push(self.reading.add(&pointer));
            }
        }
        found
    }

    fn measures(&mut self, measures: &[(String, String)]) -> Vec<Named> {
        if measures.is_empty() || measures.len() > AGGREGATE_MEASURES_MAX {
            self.mistake(
                "measures",
                format!("expected 1 to {AGGREGATE_MEASURES_MAX} measures, such as `requests = \"count\"`"),
            );
        }
        let mut named: Vec<Named> = Vec::new();
        for (name, text) in measures {
            let setting = format!("measures.{name}");
            if RESERVED.contains(&name.as_str()) {
                self.mistake(&setting, "each result already has a member of this name: choose another name");
            }
            if named.iter().any(|other| other.name == *name) {
                self.mistake(&setting, "two measures have this name: rename one");
            }
            if let Some(measure) = self.read(&setting, Measure::parse(text)) {
                let slot = self.slot(&measure);
                named.push(Named { name: name.clone(), read: measure.read, slot });
            }
        }
        named
    }

    fn slot(&mut self, measure: &Measure) -> Option<usize> {
        let slot = Slot { kind: measure.kind()?, pointer: self.reading.add(measure.pointer.as_ref()?) };
        let at = self.slots.iter().position(|other| *other == slot);
        Some(at.unwrap_or_else(|| {
            self.slots.push(slot);
            self.slots.len() - 1
        }))
    }

    /// Settings that sessions do not support: their ends, and so their ids, are known only when no event can join them
    /// any longer.
    fn check(&mut self, definition: &Definition, span: Span) {
        if matches!(span, Span::Session { .. }) {
            if definition.early.is_some() {
                self.mistake(
                    "early",
                    "a session has a result only when it is over: remove this setting, or use a window of fixed length",
                );
            }
            if definition.late == Late::Part {
                self.mistake("late", "late events of a session aren't a separate result: remove this setting, or use a window of fixed length");
            }
        }
        if definition.early.is_some_and(|early| early < Duration::from_millis(100)) {
            self.mistake("early", "expected at least 100ms");
        }
        if definition.early.is_some() && definition.emit == Emit::Final {
            self.mistake(
                "early",
                "with `emit = \"final\"` a window has one result, at its end: remove this setting, or `emit`",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(window: &str, measures: &[&str]) -> Definition {
        let measures = measures.iter().enumerate().map(|(number, text)| (format!("m{number}"), (*text).to_owned()));
        Definition { window: window.into(), measures: measures.collect(), ..Definition::default() }
    }

    fn mistakes(definition: &Definition) -> Vec<String> {
        let found = AggregateRules::new(TypeName::new("a.b").unwrap(), definition).err().unwrap_or_default();
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn equal_measures_share_accumulators() {
        let definition = definition("1m", &["sum:/a", "mean:/a", "rate:/a", "p50:/a", "p99:/a", "sum:/b", "count"]);
        let rules = AggregateRules::new(TypeName::new("a.b").unwrap(), &definition).unwrap();
        assert_eq!(rules.slots.len(), 3);
        assert_eq!(rules.window_bytes, AGGREGATE_BYTES / 9);
    }

    #[test]
    fn all_mistakes_are_reported_together() {
        let wrong = Definition {
            window: "soon".into(),
            group_by: vec!["a".into(), "/b".into(), "/b".into()],
            measures: vec![
                ("window".into(), "count".into()),
                ("x".into(), "cuont".into()),
                ("y".into(), "sum:/~2".into()),
                ("z".into(), "count".into()),
                ("z".into(), "count".into()),
            ],
            lateness: Some(Duration::from_hours(999_999)),
            memory: Some(1),
            ..Definition::default()
        };
        let found = mistakes(&wrong);
        let settings = [
            "window",
            "group_by",
            "group_by",
            "measures.window",
            "measures.x",
            "measures.y",
            "measures.z",
            "lateness",
            "memory",
        ];
        assert_eq!(found.len(), settings.len(), "{found:#?}");
        for (found, setting) in found.iter().zip(settings) {
            assert!(found.starts_with(&format!("{setting}: ")), "{found}");
        }
    }

    #[test]
    fn conflicting_settings_are_mistakes() {
        let second = Some(Duration::from_secs(1));
        let sessions = Definition { early: second, late: Late::Part, ..definition("session 1m", &["count"]) };
        assert_eq!(mistakes(&sessions).len(), 2);
        assert_eq!(mistakes(&Definition { early: second, emit: Emit::Final, ..definition("1m", &["count"]) }).len(), 1);
        assert_eq!(mistakes(&definition("1m", &[])).len(), 1);
        let many = Definition { lateness: Some(Duration::from_hours(24)), ..definition("1s", &["count"]) };
        assert!(mistakes(&many)[0].contains("86703 windows could be open"), "{:?}", mistakes(&many));
    }

    #[test]
    fn definitions_that_differ_have_other_fingerprints() {
        let name = TypeName::new("a.b").unwrap();
        let one = definition("1m", &["count"]);
        let other = Definition { state: true, ..one.clone() };
        assert_eq!(fingerprint(&name, &one), fingerprint(&name, &one.clone()));
        assert!(format!("{one:?}").starts_with("Definition { window: \"1m\", time: Event, event_time: None"));
        assert_ne!(fingerprint(&name, &one), fingerprint(&name, &other));
    }
}
