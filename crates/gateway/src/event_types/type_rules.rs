//! The rules of a configuration for each event type.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use access::PartialStatus;
use event::TypeName;
use json::JsonPointer;
use schema::Schema;
use timestamp::TimeRule;

use super::refused_to::RefusedTo;
use super::store_readers::StoreReaders;
use super::text_rule::TextRule;
use super::type_names::TypeNames;
use super::type_resolver::TypeResolver;
use super::type_transform::TransformHandle;
use crate::problem::Problem;

/// Where an event's id comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum IdRule {
    /// Forebay generates it.
    #[default]
    Generated,
    /// The value in the payload at this pointer. Without a value, Forebay generates it.
    Pointer(JsonPointer),
    /// The digest of the payload as the client sent it: equal events have one id.
    Content,
}

impl IdRule {
    /// The pointer, if the id is in the payload.
    #[must_use]
    pub const fn pointer(&self) -> Option<&JsonPointer> {
        match self {
            Self::Pointer(pointer) => Some(pointer),
            Self::Generated | Self::Content => None,
        }
    }
}

/// The rules of a type.
#[derive(Clone, Default)]
pub struct TypeRules {
    /// Where an event's id comes from, if its client doesn't choose it by a key.
    pub id: IdRule,
    /// The pointer to the time at which it happened, and its format.
    pub time: Option<TimeRule>,
    /// The schema of their payloads.
    pub schema: Option<Arc<Schema>>,
    /// Their transform.
    pub steps: Option<Arc<TransformHandle>>,
    /// What is done about texts that not every store can take.
    pub texts: TextRule,
    /// Whether they may be acknowledged before they are durable, if a client asks for it.
    pub ack_memory: bool,
    /// Whether they are acknowledged when they are stored, if a client asks for nothing else.
    pub ack_stored: bool,
    /// The status of a batch of which some records are rejected.
    pub partial: PartialStatus,
    /// Where rejected events are stored, if anywhere.
    pub refused_to: Option<Arc<RefusedTo>>,
    /// The readers of stored events.
    pub readers: Option<StoreReaders>,
    /// Without readers: the reason, and what to change.
    pub why_not_read: Option<Arc<str>>,
}

impl fmt::Debug for TypeRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, time, texts, ack_memory, ack_stored, .. } = self;
        f.debug_tuple("TypeRules").field(&(id, time, texts, ack_memory, ack_stored)).finish_non_exhaustive()
    }
}

/// The types of a configuration, for a gateway.
#[derive(Clone, Debug, Default)]
pub struct GatewayTypes {
    /// The types that have a table.
    pub named: BTreeMap<TypeName, TypeRules>,
    /// Types that can't be posted, even if there are rules for others: results of aggregates. Of their rules only the readers matter.
    pub results: BTreeMap<TypeName, TypeRules>,
    /// The rules for all others (`"*"`), of which at most [`limits::OPEN_TYPES_MAX`] are accepted; `None` if they are unknown.
    pub open: Option<TypeRules>,
    /// The pointer to an event's type in its payload, if neither path nor header names it.
    pub type_pointer: Option<JsonPointer>,
    /// The types of events that name none, by rules.
    pub choice: TypeResolver,
    /// Other names under which types are sent.
    pub names: TypeNames,
    /// The type as which events of unknown types are accepted, if they are.
    pub unknown: Option<TypeName>,
}

impl TypeRules {
    /// The time in an event, or why it cannot be read.
    ///
    /// # Errors
    /// It cannot be read, and such events are rejected.
    pub(crate) fn time_of(&self, payload: &str) -> Result<Result<Option<i64>, String>, Problem> {
        let Some(rule) = &self.time else { return Ok(Ok(None)) };
        match rule.read(payload) {
            Err(reason) if rule.refuses() => Err(Problem::of_time(rule.pointer(), &reason)),
            Err(reason) => Ok(Err(format!("{}: {reason}", rule.pointer()))),
            read => Ok(read),
        }
    }

    /// Whether both give the same events. Equal schemas and steps are compared by address: a reload keeps those that haven't changed. The
    /// readers don't count: they have no effect on posted events.
    pub(crate) fn are_same_as(&self, other: &Self) -> bool {
        fn is_one<T>(a: Option<&Arc<T>>, b: Option<&Arc<T>>) -> bool {
            a.map(Arc::as_ptr) == b.map(Arc::as_ptr)
        }
        let acks = |rules: &Self| (rules.ack_memory, rules.ack_stored);
        (&self.id, &self.time, self.texts, acks(self)) == (&other.id, &other.time, other.texts, acks(other))
            && is_one(self.schema.as_ref(), other.schema.as_ref())
            && is_one(self.steps.as_ref(), other.steps.as_ref())
    }
}
