//! Which types are accepted: those of the configuration, and those that clients open under `*`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use access::PartialStatus;
use event::TypeName;
use eventlog::{TypeId, Types};
use json::JsonPointer;
use limits::OPEN_TYPES_MAX;

use super::refused_to::RefusedTo;
use super::store_readers::StoreReaders;
use super::type_entry::{TypeEntry, TypeState};
use super::type_names::TypeNames;
use super::type_resolver::TypeResolver;
use super::type_rules::{GatewayTypes, TypeRules};
use crate::error_code::ErrorCode;
use crate::problem::Problem;

/// The types of the process.
#[derive(Debug)]
pub(crate) struct TypeRegistry {
    named: BTreeMap<TypeName, Arc<TypeRules>>,
    results: BTreeMap<TypeName, TypeRules>,
    open: Option<Arc<TypeRules>>,
    pub(crate) type_pointer: Option<JsonPointer>,
    pub(crate) choice: TypeResolver,
    names: TypeNames,
    unknown: Option<TypeName>,
    /// Whether there is a type whose payloads are repaired.
    pub(crate) repairs: bool,
    /// Whether there is a type whose events are answered when they are stored.
    pub(crate) acks_stored: bool,
    /// The headers that steps read, in lower case.
    pub(crate) headers: Box<[Box<str>]>,
    types: Arc<Types>,
    /// Held while it is decided whether one more type is accepted.
    opening: Mutex<()>,
    /// During a reload, the registry before it. Only events with the same rules in both are accepted.
    before: Option<Box<TypeRegistry>>,
}

/// How a configuration resolves a type name.
enum ResolvedBy<'t> {
    Named(&'t Arc<TypeRules>),
    /// One of the others.
    Open(&'t Arc<TypeRules>),
    /// It is the name of an aggregate's results, which can't be posted.
    Result,
    Nothing,
}

impl ResolvedBy<'_> {
    fn same_rules_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Named(a) | Self::Open(a), Self::Named(b) | Self::Open(b)) => a.are_same_as(b),
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

    /// The registry of `types` while a reload to them is in progress. The reload may fail, so none of their names is published.
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
            names: types.names,
            unknown: types.unknown,
            types: seen.clone(),
            opening: Mutex::new(()),
            before: None,
        }
    }

    /// Whether both resolve an event that names no type to the same type.
    pub(crate) fn resolves_like(&self, other: &Self) -> bool {
        fn rules(types: &TypeRegistry) -> (&Option<JsonPointer>, &TypeResolver, &TypeNames, &Option<TypeName>) {
            (&types.type_pointer, &types.choice, &types.names, &types.unknown)
        }
        rules(self) == rules(other)
    }

    /// Whether events of unknown types are accepted, as another type.
    pub(crate) const fn has_unknown(&self) -> bool {
        self.unknown.is_some()
    }

    /// The rules of a type, if it is accepted.
    fn rules_of(&self, name: &TypeName) -> Option<&TypeRules> {
        match self.resolved_by(name) {
            ResolvedBy::Named(rules) | ResolvedBy::Open(rules) => Some(rules),
            ResolvedBy::Result | ResolvedBy::Nothing => None,
        }
    }

    /// Where rejected events of a type are stored, if anywhere.
    pub(crate) fn refused_to(&self, name: &TypeName) -> Option<&Arc<RefusedTo>> {
        self.rules_of(name)?.refused_to.as_ref()
    }

    /// Whether a batch in which an event of this type is rejected may be answered 200.
    pub(crate) fn allows_partial_ok(&self, name: &TypeName) -> bool {
        self.rules_of(name).is_some_and(|rules| rules.partial == PartialStatus::Ok)
    }

    /// Whether the transform of a type takes something out of payloads, or makes it unreadable.
    pub(crate) fn withholds(&self, name: &TypeName) -> bool {
        let steps = self.rules_of(name).and_then(|rules| rules.steps.as_ref());
        steps.is_some_and(|steps| steps.transform().withholds())
    }

    /// Whether the configuration has a table for this type. Clients choose the names of other types.
    pub(crate) fn is_declared(&self, name: &TypeName) -> bool {
        self.named.contains_key(name)
    }

    /// Whether both accept the same names.
    pub(crate) fn same_types_as(&self, other: &Self) -> bool {
        self.named.keys().eq(other.named.keys())
            && self.results.keys().eq(other.results.keys())
            && self.open.is_some() == other.open.is_some()
    }

    /// Whether a request whose head was read by one registry can be accepted by the other, if it has another header than its type's.
    pub(crate) fn reads_heads_like(&self, other: &Self) -> bool {
        self.resolves_like(other)
            && self.headers == other.headers
            && (self.unknown.is_none() || self.same_types_as(other))
    }

    /// Checks that a reload doesn't change the type of events that name none.
    ///
    /// # Errors
    /// It does: their type is changing.
    pub(crate) fn check_stable(&self) -> Result<(), Problem> {
        let is_same = self
            .before
            .as_ref()
            .is_none_or(|before| (&before.type_pointer, &before.choice) == (&self.type_pointer, &self.choice));
        if is_same { Ok(()) } else { Err(Problem::changing()) }
    }

    fn resolved_by(&self, name: &TypeName) -> ResolvedBy<'_> {
        match (self.named.get(name), &self.open) {
            (Some(rules), _) => ResolvedBy::Named(rules),
            _ if self.results.contains_key(name) => ResolvedBy::Result,
            (None, Some(rules)) => ResolvedBy::Open(rules),
            (None, None) => ResolvedBy::Nothing,
        }
    }

    /// Whether payloads are read to find their types.
    pub(crate) const fn reads_payloads(&self) -> bool {
        self.type_pointer.is_some() || !self.choice.is_empty()
    }

    /// The type as which events with this type name are accepted.
    ///
    /// # Errors
    /// No accepted type has the name, and events of unknown types are rejected.
    pub(crate) fn find(&self, text: &str) -> Result<TypeEntry, Problem> {
        check_no_token(text)?;
        let text = &*self.resolve(text)?;
        self.find_own(text).or_else(|problem| {
            let is_result = TypeName::new(text).is_ok_and(|name| self.results.contains_key(&name));
            if is_result { Err(problem) } else { self.take_unknown(problem) }
        })
    }

    /// Whether a type has aliases.
    pub(crate) fn has_names(&self) -> bool {
        !self.names.is_empty() || self.before.as_ref().is_some_and(|before| before.has_names())
    }

    /// The name of the type with this name or alias.
    ///
    /// # Errors
    /// It is changing.
    pub(crate) fn resolve<'n>(&'n self, name: &'n str) -> Result<Cow<'n, str>, Problem> {
        let found = self.names.resolve(name);
        let is_same = self.before.as_ref().is_none_or(|before| before.names.resolve(name) == found);
        if is_same { Ok(found) } else { Err(Problem::changing()) }
    }

    /// The type as which an event is accepted whose type is unknown, as the problem says.
    ///
    /// # Errors
    /// The problem, if it is another one, or if events of unknown types are rejected.
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
    /// The text is no valid name, no accepted type has it, or the rules of its type are changing.
    pub(crate) fn find_own(&self, text: &str) -> Result<TypeEntry, Problem> {
        let unknown = |detail: String| Problem::new(ErrorCode::UnknownType, detail);
        let name = TypeName::new(text).map_err(|error| unknown(error.to_string()))?;
        let said = self.resolved_by(&name);
        if self.before.as_ref().is_some_and(|before| !before.resolved_by(&name).same_rules_as(&said)) {
            return Err(Problem::changing());
        }
        let rules = match said {
            ResolvedBy::Named(rules) => {
                let id = self.types.intern(&name);
                return Ok(self.known(name, id, rules));
            }
            ResolvedBy::Open(rules) => rules,
            ResolvedBy::Result => {
                return Err(unknown(format!(
                    "type {name} has results of an aggregate, and clients cannot post to it: use another type"
                )));
            }
            ResolvedBy::Nothing => return Err(unknown_type(&name)),
        };
        let id = self.open_type(&name).ok_or_else(|| {
            let detail = format!(
                "the limit of {OPEN_TYPES_MAX} types under [types.\"*\"] is reached; add [types.{name}] to \
                 the configuration"
            );
            Problem::new(ErrorCode::TooManyTypes, detail)
        })?;
        Ok(self.known(name, id, rules))
    }

    /// Checks that the rules of an entry give the same event as those of this registry.
    ///
    /// # Errors
    /// The type is no longer accepted, or its rules have changed, or are changing.
    pub(crate) fn check_rules(&self, entry: &TypeEntry) -> Result<(), Problem> {
        match self.find_own(entry.name.as_str()) {
            Ok(now) if now.rules.are_same_as(&entry.rules) => Ok(()),
            Err(problem) if problem.code == ErrorCode::UnknownType => Err(entry.unknown_type_problem()),
            _ => Err(Problem::changing()),
        }
    }

    /// The readers for the events of a type. It opens no type.
    ///
    /// # Errors
    /// The type is unknown, or its events can't be read back.
    pub(crate) fn readers_of(&self, name: &TypeName) -> Result<StoreReaders, Problem> {
        let posted = self.named.get(name).map(Arc::as_ref).or_else(|| self.results.get(name));
        let rules = posted.or(self.open.as_deref()).ok_or_else(|| unknown_type(name))?;
        rules.readers.clone().ok_or_else(|| {
            let why = rules.why_not_read.as_deref().map_or_else(String::new, |why| format!(": {why}"));
            Problem::new(ErrorCode::NotReadable, format!("type {name} has no route to a readable sink{why}"))
        })
    }

    /// The readers for the events of all types, each store once.
    pub(crate) fn readers(&self) -> Vec<StoreReaders> {
        let mut readers: Vec<StoreReaders> = Vec::new();
        let all = self.named.values().chain(&self.open).map(Arc::as_ref).chain(self.results.values());
        for reader in all.filter_map(|rules| rules.readers.as_ref()) {
            if !readers.iter().any(|known| known.of_shard(None).name() == reader.of_shard(None).name()) {
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
            state: TypeState::Accepted,
            id_steps: OnceLock::new(),
            types: self.types.clone(),
        }
    }

    /// A type that was seen before, even before a restart, needs no further room.
    fn open_type(&self, name: &TypeName) -> Option<TypeId> {
        let _held = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let room = self.types.len() < self.named.len() + OPEN_TYPES_MAX;
        self.types.get(name).or_else(|| room.then(|| self.types.intern(name)))
    }
}

/// Rejects a token, known or unknown, that a client sends instead of a type: as a type it would be in the store and in metrics.
fn check_no_token(name: &str) -> Result<(), Problem> {
    if !access::contains_token(name) {
        return Ok(());
    }
    let detail = "the name of the type is a token: send the token as `Authorization: Bearer fb_…` instead, and revoke this \
                  one if proxies log paths";
    Err(Problem::new(ErrorCode::UnknownType, detail))
}

fn unknown_type(name: &TypeName) -> Problem {
    Problem::new(ErrorCode::UnknownType, format!("the configuration has neither [types.{name}] nor [types.\"*\"]"))
}

#[cfg(test)]
#[path = "type_registry/tests.rs"]
mod tests;
