//! Which types are taken, and what is known of each.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use event::TypeName;
use event::limits::OPEN_TYPES_MAX;
use event::read::Reader;
use eventlog::{Gate, TypeId, Types};
use pipeline::pointer::JsonPointer;
use pipeline::schema::Schema;
use pipeline::{TimeRule, Values, View};

use crate::error_code::ErrorCode;
use crate::ingest::ids::{PartIds, id_steps};
use crate::problem::Problem;
use crate::types::cost::{self, CostBudget, OverBudget};
use crate::types::text_rule::TextRule;
use crate::types::type_resolver::TypeResolver;
use crate::types::type_transform::TransformHandle;

/// What a gateway does with the events of a type.
#[derive(Clone, Default)]
pub struct TypeRules {
    /// Where an event's id stands in its payload.
    pub id: Option<JsonPointer>,
    /// Where the time is at which it happened, and how it is read.
    pub time: Option<TimeRule>,
    /// What their payloads must be, if anything is said of it.
    pub schema: Option<Arc<Schema>>,
    /// The steps that they are taken through, if there are any.
    pub steps: Option<Arc<TransformHandle>>,
    /// What is done about what not every store can take.
    pub texts: TextRule,
    /// Whether they may be answered before they are durable, where a client asks for it.
    pub ack_memory: bool,
    /// Whether they are answered when they are stored, where a client asks for nothing else.
    pub ack_stored: bool,
    /// Whom to ask for events that are stored, if anybody.
    pub reader: Option<Arc<dyn Reader>>,
}

impl fmt::Debug for TypeRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reader = self.reader.as_ref().map(|reader| reader.name());
        f.debug_struct("TypeRules")
            .field("id", &self.id)
            .field("time", &self.time)
            .field("schema", &self.schema)
            .field("steps", &self.steps)
            .field("texts", &self.texts)
            .field("ack_memory", &self.ack_memory)
            .field("ack_stored", &self.ack_stored)
            .field("reader", &reader)
            .finish()
    }
}

/// The types of a configuration, as far as a gateway needs to know them.
#[derive(Clone, Debug, Default)]
pub struct GatewayTypes {
    /// The types that have a table of their own.
    pub named: BTreeMap<TypeName, TypeRules>,
    /// Types that nobody posts, though there are rules for others: results of aggregates. Of their rules only whom to ask for
    /// them means anything.
    pub results: BTreeMap<TypeName, TypeRules>,
    /// The rules for all others (`"*"`), of which at most [`OPEN_TYPES_MAX`] are taken; `None` if they are unknown.
    pub open: Option<TypeRules>,
    /// Where an event's type stands in its payload, if neither path nor header names it.
    pub type_pointer: Option<JsonPointer>,
    /// What events are that nobody names the type of.
    pub choice: TypeResolver,
    /// The type as which events of unknown types are taken, if they are.
    pub unknown: Option<TypeName>,
}

impl TypeRules {
    /// The time that an event says of itself, or why it cannot be read.
    ///
    /// # Errors
    /// It cannot be read, and such events are refused.
    pub(crate) fn time_of(&self, payload: &str) -> Result<Result<Option<i64>, String>, Problem> {
        let Some(rule) = &self.time else { return Ok(Ok(None)) };
        match rule.read(payload) {
            Err(reason) if rule.refuses() => Err(Problem::of_time(rule.pointer(), &reason)),
            Err(reason) => Ok(Err(format!("{}: {reason}", rule.pointer()))),
            read => Ok(read),
        }
    }

    /// Whether events come to the same by both. Schemas and steps that are the same are one: whoever reads a configuration again keeps
    /// those that haven't changed. Whom to ask for events is no rule for those that come.
    pub(crate) fn are_as(&self, other: &Self) -> bool {
        fn is_one<T>(a: Option<&Arc<T>>, b: Option<&Arc<T>>) -> bool {
            a.map(Arc::as_ptr) == b.map(Arc::as_ptr)
        }
        let acks = |rules: &Self| (rules.ack_memory, rules.ack_stored);
        (&self.id, &self.time, self.texts, acks(self)) == (&other.id, &other.time, other.texts, acks(other))
            && is_one(self.schema.as_ref(), other.schema.as_ref())
            && is_one(self.steps.as_ref(), other.steps.as_ref())
    }
}

/// A type that is taken.
#[derive(Clone, Debug)]
pub(crate) struct TypeEntry {
    pub(crate) name: TypeName,
    pub(crate) id: TypeId,
    pub(crate) gate: Gate,
    pub(crate) rules: Arc<TypeRules>,
    pub(crate) standing: TypeState,
    /// Worked out when the first event is made several.
    id_steps: OnceLock<Vec<usize>>,
    types: Arc<Types>,
}

/// What a newer configuration says of a type that was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypeState {
    Taken,
    /// It doesn't take it any more.
    Gone,
    /// Its rules are changing.
    Changing,
}

impl TypeEntry {
    /// Whether an event of this type is taken now.
    ///
    /// # Errors
    /// Too many wait for one of its stores, or it isn't taken any more, or its rules are changing.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        match self.standing {
            TypeState::Taken => {}
            TypeState::Gone => return Err(self.is_unknown()),
            TypeState::Changing => return Err(Problem::changing()),
        }
        if !self.gate.is_closed() {
            return Ok(());
        }
        let detail = format!("too many events wait for a store of type {}; send the event again later", self.name);
        Err(Problem::new(ErrorCode::BacklogFull, detail))
    }
}

impl TypeEntry {
    pub(crate) fn is_taken(&self) -> bool {
        self.standing == TypeState::Taken
    }

    /// Whether what these rules have made of an event is what those of `table` would.
    ///
    /// # Errors
    /// The type isn't taken any more, or its rules are others, or are changing.
    pub(crate) fn check_rules(&self, table: &TypeRegistry) -> Result<(), Problem> {
        match table.find_own(self.name.as_str()) {
            Ok(now) if now.rules.are_as(&self.rules) => Ok(()),
            Err(problem) if problem.code == ErrorCode::UnknownType => Err(self.is_unknown()),
            _ => Err(Problem::changing()),
        }
    }

    /// Whether a payload of so many bytes would hold up its shard for long.
    pub(crate) fn is_much_work(&self, bytes: usize) -> bool {
        match &self.rules.steps {
            Some(steps) => steps.effort().is_much(bytes),
            None => self.reads_payloads() && cost::is_much_by_size(bytes),
        }
    }

    /// Whether payloads of the type are looked at, its steps apart.
    pub(crate) fn reads_payloads(&self) -> bool {
        self.rules.schema.is_some() || !self.rules.texts.flaws.is_none()
    }

    /// Holds a payload against the type's schema, and gives it with its values, if that has read them.
    ///
    /// # Errors
    /// To find out is more work than there may be. Within: it isn't what that wants.
    pub(crate) fn check_payload<'p>(
        &self,
        payload: &'p str,
        values: &'p mut Values,
        work: &mut CostBudget,
    ) -> Result<Result<View<'p>, Problem>, OverBudget> {
        let Some(schema) = &self.rules.schema else { return Ok(Ok(View::unread(payload))) };
        let read = values.read(payload);
        let checked = work.check(schema, read)?;
        Ok(checked.map(|()| read).map_err(|violations| Problem::of_schema(&self.name, violations)))
    }

    /// Whether a payload is taken in which nothing is at fault but this half of a surrogate pair, and which was mended.
    ///
    /// # Errors
    /// The fault, where payloads of the type aren't repaired.
    pub(crate) fn check_mended(&self, fault: Option<Problem>) -> Result<(), Problem> {
        fault.filter(|_| !self.rules.texts.repair).map_or(Ok(()), Err)
    }

    /// A payload as the stores of the type can take it.
    ///
    /// # Errors
    /// They can't, and it isn't to be repaired.
    pub(crate) fn storable<'p>(&self, payload: &'p str) -> Result<Cow<'p, str>, Problem> {
        self.rules.texts.storable(&self.name, payload)
    }

    /// How the events that steps make of one get their ids.
    pub(crate) fn part_ids(&self) -> PartIds<'_> {
        PartIds::new(&self.rules, self.id_steps.get_or_init(|| id_steps(&self.rules)))
    }

    /// The time that an event of the type says of itself. One that cannot be read is counted, and is none.
    ///
    /// # Errors
    /// It cannot be read, and the type refuses such events.
    pub(crate) fn time_of(&self, payload: &str) -> Result<Option<i64>, Problem> {
        Ok(self.rules.time_of(payload)?.unwrap_or_else(|reason| {
            self.types.unread_times().add(&self.name, &reason);
            None
        }))
    }

    /// What is said of a type that was taken when the request began.
    pub(crate) fn is_unknown(&self) -> Problem {
        let detail = format!("the configuration has changed and has no [types.{}] any more", self.name);
        Problem::new(ErrorCode::UnknownType, detail)
    }
}

/// The types of the process.
#[derive(Debug)]
pub(crate) struct TypeRegistry {
    named: BTreeMap<TypeName, Arc<TypeRules>>,
    results: BTreeMap<TypeName, TypeRules>,
    open: Option<Arc<TypeRules>>,
    pub(crate) type_pointer: Option<JsonPointer>,
    pub(crate) choice: TypeResolver,
    unknown: Option<TypeName>,
    /// Whether there is a type whose payloads are repaired.
    pub(crate) repairs: bool,
    /// Whether there is a type whose events are answered when they are stored.
    pub(crate) acks_stored: bool,
    /// The headers that steps ask for, in small letters.
    pub(crate) headers: Box<[Box<str>]>,
    types: Arc<Types>,
    /// ReadBuffer while it is decided whether one more type is taken.
    opening: Mutex<()>,
    /// While these take the place of others: those. Only what is the same by both is taken.
    before: Option<Box<TypeRegistry>>,
}

/// What a configuration says of a name.
enum Said<'t> {
    Named(&'t Arc<TypeRules>),
    /// One of the others.
    Open(&'t Arc<TypeRules>),
    /// It is that of results, which nobody posts.
    Result,
    Nothing,
}

impl Said<'_> {
    fn is_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Named(a) | Self::Open(a), Self::Named(b) | Self::Open(b)) => a.are_as(b),
            (Self::Result, Self::Result) | (Self::Nothing, Self::Nothing) => true,
            _ => false,
        }
    }
}

impl TypeRegistry {
    pub(crate) fn new(types: GatewayTypes, seen: &Arc<Types>) -> Self {
        types.named.keys().for_each(|name| {
            seen.intern(name);
        });
        Self::of(types, seen)
    }

    /// That of `types` while they take the place of others. Whether they will isn't certain: none of their names is made known.
    pub(crate) fn changing(before: GatewayTypes, types: GatewayTypes, seen: &Arc<Types>) -> Self {
        Self { before: Some(Box::new(Self::of(before, seen))), ..Self::of(types, seen) }
    }

    fn of(types: GatewayTypes, seen: &Arc<Types>) -> Self {
        let all = types.named.values().chain(&types.open);
        let repairs = all.clone().any(|rules| rules.texts.repair);
        let acks_stored = all.clone().any(|rules| rules.ack_stored);
        let headers: BTreeSet<Box<str>> =
            all.flat_map(|rules| &rules.steps).flat_map(|steps| steps.headers()).map(Into::into).collect();
        Self {
            headers: headers.into_iter().collect(),
            repairs,
            acks_stored,
            named: types.named.into_iter().map(|(name, rules)| (name, Arc::new(rules))).collect(),
            results: types.results,
            open: types.open.map(Arc::new),
            type_pointer: types.type_pointer,
            choice: types.choice,
            unknown: types.unknown,
            types: seen.clone(),
            opening: Mutex::new(()),
            before: None,
        }
    }

    /// Whether an event that names no type is of the same type by both. To be asked of two whose types may differ where it
    /// matters to nobody which names are unknown.
    pub(crate) fn tells_as(&self, other: &Self) -> bool {
        (&self.type_pointer, &self.choice, &self.unknown) == (&other.type_pointer, &other.choice, &other.unknown)
    }

    /// Whether events of unknown types are taken, as another one.
    pub(crate) const fn has_unknown(&self) -> bool {
        self.unknown.is_some()
    }

    /// Whether the same names are unknown by both.
    pub(crate) fn knows_as(&self, other: &Self) -> bool {
        self.named.keys().eq(other.named.keys())
            && self.results.keys().eq(other.results.keys())
            && self.open.is_some() == other.open.is_some()
    }

    /// Whether a request whose head was read by the one can be taken by the other, if another name than its type's was looked at.
    pub(crate) fn reads_heads_as(&self, other: &Self) -> bool {
        self.tells_as(other) && self.headers == other.headers && (self.unknown.is_none() || self.knows_as(other))
    }

    /// Whether it may be said what events are that name no type.
    ///
    /// # Errors
    /// That is changing.
    pub(crate) fn check_telling(&self) -> Result<(), Problem> {
        let is_same = self
            .before
            .as_ref()
            .is_none_or(|before| (&before.type_pointer, &before.choice) == (&self.type_pointer, &self.choice));
        if is_same { Ok(()) } else { Err(Problem::changing()) }
    }

    fn said_of(&self, name: &TypeName) -> Said<'_> {
        match (self.named.get(name), &self.open) {
            (Some(rules), _) => Said::Named(rules),
            _ if self.results.contains_key(name) => Said::Result,
            (None, Some(rules)) => Said::Open(rules),
            (None, None) => Said::Nothing,
        }
    }

    /// Whether payloads are looked at to know their types.
    pub(crate) const fn reads_payloads(&self) -> bool {
        self.type_pointer.is_some() || !self.choice.is_empty()
    }

    /// The type as which events are taken that have this name as their type.
    ///
    /// # Errors
    /// It is the name of no type that is taken, and unknown ones aren't taken either.
    pub(crate) fn find(&self, text: &str) -> Result<TypeEntry, Problem> {
        self.find_own(text).or_else(|problem| {
            let is_result = TypeName::new(text).is_ok_and(|name| self.results.contains_key(&name));
            if is_result { Err(problem) } else { self.take_unknown(problem) }
        })
    }

    /// The type as which an event is taken whose type is unknown, as the problem says.
    ///
    /// # Errors
    /// The problem, if it is another one, and where such events aren't taken.
    pub(crate) fn take_unknown(&self, problem: Problem) -> Result<TypeEntry, Problem> {
        if problem.code != ErrorCode::UnknownType {
            return Err(problem);
        }
        if self.before.as_ref().is_some_and(|before| before.unknown != self.unknown) {
            return Err(Problem::changing());
        }
        self.unknown.as_ref().map_or(Err(problem), |name| self.find_own(name.as_str()))
    }

    /// The type with this name.
    ///
    /// # Errors
    /// The text is no name, or the name of no type that is taken; or what is done with its events is changing.
    pub(crate) fn find_own(&self, text: &str) -> Result<TypeEntry, Problem> {
        let unknown = |detail: String| Problem::new(ErrorCode::UnknownType, detail);
        let name = TypeName::new(text).map_err(|error| unknown(error.to_string()))?;
        let said = self.said_of(&name);
        if self.before.as_ref().is_some_and(|before| !before.said_of(&name).is_as(&said)) {
            return Err(Problem::changing());
        }
        let rules = match said {
            Said::Named(rules) => {
                let id = self.types.intern(&name);
                return Ok(self.known(name, id, rules));
            }
            Said::Open(rules) => rules,
            Said::Result => {
                return Err(unknown(format!("events of type {name} are results of an aggregate, and can't be posted")));
            }
            Said::Nothing => return Err(unknown_type(&name)),
        };
        let id = self.open_type(&name).ok_or_else(|| {
            let detail =
                format!("{OPEN_TYPES_MAX} types are taken under \"*\" already; name `{name}` in the configuration");
            Problem::new(ErrorCode::TooManyTypes, detail)
        })?;
        Ok(self.known(name, id, rules))
    }

    /// Whom to ask for events of a type. To ask opens no type.
    ///
    /// # Errors
    /// The type isn't taken, or its events can't be read back.
    pub(crate) fn reader_of(&self, name: &TypeName) -> Result<Arc<dyn Reader>, Problem> {
        let posted = self.named.get(name).map(Arc::as_ref).or_else(|| self.results.get(name));
        let rules = posted.or(self.open.as_deref()).ok_or_else(|| unknown_type(name))?;
        rules.reader.clone().ok_or_else(|| {
            Problem::new(ErrorCode::NotReadable, format!("the events of type {name} go to no sink that can be read"))
        })
    }

    /// Whom to ask for events of all types, each once.
    pub(crate) fn readers(&self) -> Vec<Arc<dyn Reader>> {
        let mut readers: Vec<Arc<dyn Reader>> = Vec::new();
        let all = self.named.values().chain(&self.open).map(Arc::as_ref).chain(self.results.values());
        for reader in all.filter_map(|rules| rules.reader.as_ref()) {
            if !readers.iter().any(|known| known.name() == reader.name()) {
                readers.push(reader.clone());
            }
        }
        readers
    }

    fn known(&self, name: TypeName, id: TypeId, rules: &Arc<TypeRules>) -> TypeEntry {
        TypeEntry {
            name,
            id,
            gate: self.types.gate(id),
            rules: rules.clone(),
            standing: TypeState::Taken,
            id_steps: OnceLock::new(),
            types: self.types.clone(),
        }
    }

    /// A type that was seen before, in another life too, needs no further room.
    fn open_type(&self, name: &TypeName) -> Option<TypeId> {
        let _held = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let room = self.types.len() < self.named.len() + OPEN_TYPES_MAX;
        self.types.get(name).or_else(|| room.then(|| self.types.intern(name)))
    }
}

fn unknown_type(name: &TypeName) -> Problem {
    Problem::new(ErrorCode::UnknownType, format!("the configuration has no [types.{name}], and none for others"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> GatewayTypes {
        let named = names.iter().map(|name| (TypeName::new(name).unwrap(), TypeRules::default())).collect();
        GatewayTypes { named, ..GatewayTypes::default() }
    }

    #[test]
    fn results_of_aggregates_can_not_be_posted() {
        let results = [(TypeName::new("a.hits").unwrap(), TypeRules::default())].into();
        let types = GatewayTypes { open: Some(TypeRules::default()), results, ..named(&["a"]) };
        let table = TypeRegistry::new(types, &Arc::default());
        assert_eq!(table.find("a.hits").unwrap_err().code, ErrorCode::UnknownType);
        assert_eq!(table.find("a.other").unwrap().name.as_str(), "a.other");
    }

    #[test]
    fn only_named_types_are_known_without_open_ones() {
        let table = TypeRegistry::new(named(&["a"]), &Arc::default());
        assert_eq!(table.find("a").unwrap().name.as_str(), "a");
        assert_eq!(table.find("b").unwrap_err().code, ErrorCode::UnknownType);
        assert_eq!(table.find("A b").unwrap_err().code, ErrorCode::UnknownType);
    }

    #[test]
    fn while_it_changes_what_both_take_alike_is_taken_and_what_neither_takes_is_unknown() {
        let open = |names: &[&str]| GatewayTypes { open: Some(TypeRules::default()), ..named(names) };
        for (before, after, taken, changing, unknown) in [
            (named(&["a", "b"]), named(&["b", "c"]), vec!["b"], vec!["a", "c"], vec!["d"]),
            (open(&["a"]), named(&["c"]), vec!["c"], vec!["a", "d"], vec![]),
            (named(&["a"]), open(&["c"]), vec!["a"], vec!["c", "d"], vec![]),
            (open(&["a"]), open(&["c"]), vec!["a", "c", "d"], vec![], vec![]),
        ] {
            let both = TypeRegistry::changing(before.clone(), after.clone(), &Arc::default());
            let code = |name: &&str| both.find(name).err().map(|problem| problem.code);
            assert!(taken.iter().all(|name| code(name).is_none()), "{before:?} {after:?}");
            assert!(changing.iter().all(|name| code(name) == Some(ErrorCode::NotReady)), "{before:?} {after:?}");
            assert!(unknown.iter().all(|name| code(name) == Some(ErrorCode::UnknownType)), "{before:?} {after:?}");
        }
    }

    #[test]
    fn rules_are_the_same_by_what_they_say_of_events_that_come() {
        let id = Some("/id".parse().unwrap());
        let texts = TextRule { repair: true, ..TextRule::default() };
        let others = [
            TypeRules { id, ..TypeRules::default() },
            TypeRules { time: Some("/at".parse().unwrap()), ..TypeRules::default() },
            TypeRules { texts, ..TypeRules::default() },
            TypeRules { ack_memory: true, ..TypeRules::default() },
            TypeRules { ack_stored: true, ..TypeRules::default() },
        ];
        for rules in others {
            assert!(rules.are_as(&rules.clone()) && !rules.are_as(&TypeRules::default()), "{rules:?}");
        }
    }

    #[test]
    fn open_types_are_bounded_and_named_ones_dont_count() {
        let types = GatewayTypes { open: Some(TypeRules::default()), ..named(&["a", "b"]) };
        let table = TypeRegistry::new(types, &Arc::default());
        for number in 0..OPEN_TYPES_MAX {
            assert!(table.find(&format!("t{number}")).is_ok(), "{number}");
        }
        assert_eq!(table.find("more").unwrap_err().code, ErrorCode::TooManyTypes);
        assert!(table.find("t0").is_ok() && table.find("a").is_ok());
    }
}
