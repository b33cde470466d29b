//! A compiled schema: rules that refer to each other by number.

use super::format::Format;
use super::members::Members;
use super::number::{Divisor, Number};
use super::pattern::Pattern;
use crate::values::View;

/// The number of some [`Rules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Id(pub(super) usize);

/// The number of a schema with a name of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ResourceId(pub(super) usize);

/// What one schema says, the keywords for each kind of value together.
#[derive(Debug)]
pub(super) struct Rules {
    /// Where it stands: what error messages name.
    pub(super) location: Box<str>,
    pub(super) resource: ResourceId,
    /// Takes nothing at all.
    pub(super) is_false: bool,
    pub(super) allowed: Allowed,
    // Most rules have neither.
    pub(super) values: Option<Box<Values>>,
    pub(super) number: Option<Box<NumberRules>>,
    pub(super) text: Option<TextRules>,
    pub(super) array: Option<Box<ArrayRules>>,
    pub(super) object: Option<Box<ObjectRules>>,
    pub(super) applied: Vec<Applied>,
    pub(super) unevaluated_items: Option<Id>,
    pub(super) unevaluated_properties: Option<Id>,
}

impl Rules {
    /// Whether something is said that is no plain list of conditions.
    pub(super) fn has_choices(&self) -> bool {
        let is_plain = |applied: &Applied| matches!(applied, Applied::Ref(_) | Applied::All(_));
        !self.applied.iter().all(is_plain) || self.unevaluated_items.is_some() || self.unevaluated_properties.is_some()
    }

    /// Whether every value is taken.
    pub(super) fn says_nothing(&self) -> bool {
        !self.is_false
            && self.allowed.takes_all()
            && self.values.is_none()
            && self.number.is_none()
            && self.text.is_none()
            && self.array.is_none()
            && self.object.is_none()
            && self.applied.iter().all(|applied| matches!(applied, Applied::Ref(_) | Applied::All(_)))
            && self.unevaluated_items.is_none()
            && self.unevaluated_properties.is_none()
    }
}

/// The kinds of values that are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowed {
    /// A bit for each of [`KINDS`].
    bits: u8,
    /// Whether a number with a fraction of zero counts as an integer.
    pub(super) whole_fractions: bool,
}

/// Kinds by the names that schemas give them.
pub(super) const KINDS: [&str; 7] = ["null", "boolean", "number", "string", "array", "object", "integer"];
const INTEGER: usize = 6;
const ALL: u8 = 0b011_1111;

impl Allowed {
    pub(super) const fn all(whole_fractions: bool) -> Self {
        Self { bits: ALL, whole_fractions }
    }

    pub(super) const fn nothing(whole_fractions: bool) -> Self {
        Self { bits: 0, whole_fractions }
    }

    /// Takes a kind too; says whether there is one of this name.
    pub(super) fn add(&mut self, name: &str) -> bool {
        let found = KINDS.iter().position(|kind| *kind == name);
        self.bits |= found.map_or(0, |bit| 1 << bit);
        found.is_some()
    }

    pub(super) const fn takes_all(self) -> bool {
        self.bits & ALL == ALL
    }

    pub(super) const fn takes(self, kind: crate::values::Kind) -> bool {
        self.bits & (1 << kind as u8) != 0
    }

    pub(super) const fn takes_integers(self) -> bool {
        self.bits & (1 << INTEGER) != 0
    }

    pub(super) fn names(self) -> String {
        let names = KINDS.iter().enumerate().filter(|(bit, _)| self.bits & (1 << bit) != 0);
        names.map(|(_, name)| *name).collect::<Vec<_>>().join(" or ")
    }
}

/// The values of `const` or `enum`.
#[derive(Debug)]
pub(super) struct Values {
    pub(super) keyword: &'static str,
    /// Those that are strings, in order.
    pub(super) texts: Vec<Box<str>>,
    /// The others.
    pub(super) others: Vec<Owned>,
    /// As they are written.
    pub(super) shown: Box<str>,
}

impl Values {
    /// All of them, as JSON.
    pub(super) fn all(&self) -> Vec<String> {
        let texts = self.texts.iter().map(|text| serde_json::Value::from(&**text).to_string());
        texts.chain(self.others.iter().map(|value| value.text.to_string())).collect()
    }
}

/// A value of its own text.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) text: Box<str>,
    pub(super) nodes: Box<[crate::values::Node]>,
}

impl Owned {
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.into(), nodes: crate::values::read(text).into() }
    }

    pub(super) fn view(&self) -> View<'_> {
        View { text: &self.text, nodes: &self.nodes }
    }
}

#[derive(Debug, Default)]
pub(super) struct NumberRules {
    pub(super) bounds: Vec<Bound>,
    pub(super) multiple_of: Option<Divisor>,
}

#[derive(Debug)]
pub(super) struct Bound {
    pub(super) side: Side,
    pub(super) limit: Number,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Minimum,
    Above,
    Maximum,
    Below,
}

/// How many of something there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) min: usize,
    pub(super) max: usize,
}

impl Default for Span {
    fn default() -> Self {
        Self { min: 0, max: usize::MAX }
    }
}

impl Span {
    pub(super) const fn is_any(self) -> bool {
        self.min == 0 && self.max == usize::MAX
    }
}

#[derive(Debug, Default)]
pub(super) struct TextRules {
    pub(super) length: Span,
    pub(super) pattern: Option<Pattern>,
    pub(super) format: Option<Format>,
}

#[derive(Debug, Default)]
pub(super) struct ArrayRules {
    pub(super) count: Span,
    pub(super) unique: bool,
    pub(super) prefix: Vec<Id>,
    pub(super) rest: Option<Id>,
    pub(super) contains: Option<Contains>,
}

#[derive(Debug)]
pub(super) struct Contains {
    pub(super) rules: Id,
    pub(super) count: Span,
    /// Whether elements that it takes count as evaluated.
    pub(super) marks: bool,
}

#[derive(Debug, Default)]
pub(super) struct ObjectRules {
    pub(super) count: Span,
    pub(super) members: Members,
    pub(super) required: usize,
    pub(super) patterns: Vec<(Pattern, Id)>,
    pub(super) additional: Option<Id>,
    pub(super) names: Option<Id>,
    pub(super) dependents: Vec<Dependent>,
}

/// What must hold of an object that has a member.
#[derive(Debug)]
pub(super) struct Dependent {
    pub(super) keyword: &'static str,
    pub(super) member: usize,
    pub(super) needs: Needs,
}

#[derive(Debug)]
pub(super) enum Needs {
    Members(Vec<usize>),
    Rules(Id),
}

/// Rules for the same value.
#[derive(Debug)]
pub(super) enum Applied {
    Ref(Id),
    Dynamic(Dynamic),
    All(Vec<Id>),
    Any(Vec<Id>),
    One(Vec<Id>),
    Not(Id),
    If { condition: Id, then: Option<Id>, otherwise: Option<Id> },
}

/// A reference to the outermost of these that is being followed.
#[derive(Debug)]
pub(super) struct Dynamic {
    /// Where none of them is.
    pub(super) otherwise: Id,
    pub(super) candidates: Vec<(ResourceId, Id)>,
}
