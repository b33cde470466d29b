//! A compiled schema: subschemas that refer to each other by number.

use json::{IndexedText, ValueKind};

use super::ecma_pattern::SchemaPattern;
use super::format::StringFormat;
use super::ids::{ResourceId, SubschemaId};
use super::number::{Divisor, NumberLiteral};
use super::property_map::PropertyMap;

/// All subschemas of a schema. The first is its root.
#[derive(Debug)]
pub struct CompiledSchema {
    pub(super) subschemas: Vec<Subschema>,
    /// Whether references depend on the path that led to them.
    pub(super) is_dynamic: bool,
    /// The names of the documents that it refers to, of the given ones.
    pub(super) documents: Vec<String>,
}

impl std::ops::Index<SubschemaId> for CompiledSchema {
    type Output = Subschema;

    fn index(&self, id: SubschemaId) -> &Subschema {
        &self.subschemas[id.0]
    }
}

/// The rules of one schema, with the keywords for each kind of value together.
#[derive(Debug)]
pub struct Subschema {
    /// Its place, for error messages.
    pub location: Box<str>,
    /// The named schema that it belongs to.
    pub resource: ResourceId,
    /// Whether it accepts no value.
    pub is_false: bool,
    /// `type`
    pub allowed: AllowedTypes,
    // Most subschemas have neither.
    /// `const` and `enum`
    pub values: Option<Box<EnumValues>>,
    /// Keywords of numbers.
    pub number: Option<Box<NumberRules>>,
    /// Keywords of strings.
    pub text: Option<StringRules>,
    /// Keywords of arrays.
    pub array: Option<Box<ArrayRules>>,
    /// Keywords of objects.
    pub object: Option<Box<ObjectRules>>,
    /// Subschemas for the same value.
    pub applied: Vec<Applicator>,
    /// `unevaluatedItems`
    pub unevaluated_items: Option<SubschemaId>,
    /// `unevaluatedProperties`
    pub unevaluated_properties: Option<SubschemaId>,
}

/// The types of values that are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowedTypes {
    /// A bit for each of [`TYPE_NAMES`].
    bits: u8,
    /// Whether a number with a fraction of zero counts as an integer.
    pub(super) whole_fractions: bool,
}

/// The types of values by the names that schemas give them.
pub const TYPE_NAMES: [&str; 7] = ["null", "boolean", "number", "string", "array", "object", "integer"];
const INTEGER: usize = 6;
const ALL: u8 = 0b011_1111;

impl AllowedTypes {
    pub(super) const fn all(whole_fractions: bool) -> Self {
        Self { bits: ALL, whole_fractions }
    }

    pub(super) const fn nothing(whole_fractions: bool) -> Self {
        Self { bits: 0, whole_fractions }
    }

    /// Adds a type; returns whether there is one of this name.
    pub(super) fn add(&mut self, name: &str) -> bool {
        let found = TYPE_NAMES.iter().position(|kind| *kind == name);
        self.bits |= found.map_or(0, |bit| 1 << bit);
        found.is_some()
    }

    /// Whether every type is accepted.
    #[must_use]
    pub const fn takes_all(self) -> bool {
        self.bits & ALL == ALL
    }

    /// Whether all values of a kind are accepted.
    #[must_use]
    pub const fn takes(self, kind: ValueKind) -> bool {
        self.bits & (1 << kind as u8) != 0
    }

    /// Whether `integer` is listed.
    #[must_use]
    pub const fn takes_integers(self) -> bool {
        self.bits & (1 << INTEGER) != 0
    }

    pub(super) fn names(self) -> String {
        let names = TYPE_NAMES.iter().enumerate().filter(|(bit, _)| self.bits & (1 << bit) != 0);
        names.map(|(_, name)| *name).collect::<Vec<_>>().join(" or ")
    }
}

/// The values of `const` or `enum`.
#[derive(Debug)]
pub struct EnumValues {
    /// Which of both it is.
    pub keyword: &'static str,
    /// Those that are strings, in order.
    pub texts: Vec<Box<str>>,
    /// The others.
    pub others: Vec<IndexedText>,
    /// Their texts.
    pub(super) shown: Box<str>,
}

/// Keywords of numbers.
#[derive(Debug, Default)]
pub struct NumberRules {
    /// `minimum`, `maximum` and those that exclude the limit.
    pub bounds: Vec<Bound>,
    /// `multipleOf`
    pub multiple_of: Option<Divisor>,
}

/// A limit of numbers.
#[derive(Debug)]
pub struct Bound {
    /// Which limit it is.
    pub side: BoundSide,
    /// The number.
    pub limit: NumberLiteral,
}

/// The kinds of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundSide {
    /// `minimum`
    Minimum,
    /// `exclusiveMinimum`
    Above,
    /// `maximum`
    Maximum,
    /// `exclusiveMaximum`
    Below,
}

/// How many of something there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountRange {
    /// At least so many.
    pub min: usize,
    /// At most so many.
    pub max: usize,
}

impl Default for CountRange {
    fn default() -> Self {
        Self { min: 0, max: usize::MAX }
    }
}

impl CountRange {
    pub(super) const fn is_any(self) -> bool {
        self.min == 0 && self.max == usize::MAX
    }
}

/// Keywords of strings.
#[derive(Debug, Default)]
pub struct StringRules {
    /// `minLength` and `maxLength`
    pub length: CountRange,
    /// `pattern`
    pub pattern: Option<SchemaPattern>,
    /// `format`, if it is asserted.
    pub format: Option<StringFormat>,
}

/// Keywords of arrays.
#[derive(Debug, Default)]
pub struct ArrayRules {
    /// `minItems` and `maxItems`
    pub count: CountRange,
    /// `uniqueItems`
    pub unique: bool,
    /// What the first elements must be.
    pub prefix: Vec<SubschemaId>,
    /// What the elements after these must be.
    pub rest: Option<SubschemaId>,
    /// `contains`
    pub contains: Option<ContainsRule>,
}

/// `contains`, with its counts.
#[derive(Debug)]
pub struct ContainsRule {
    /// What the elements must be that are counted.
    pub rules: SubschemaId,
    /// How many there may be.
    pub count: CountRange,
    /// Whether elements that it accepts count as evaluated.
    pub marks: bool,
}

/// Keywords of objects.
#[derive(Debug, Default)]
pub struct ObjectRules {
    /// `minProperties` and `maxProperties`
    pub count: CountRange,
    /// The members that keywords name.
    pub members: PropertyMap,
    pub(super) required: usize,
    /// `patternProperties`
    pub patterns: Vec<(SchemaPattern, SubschemaId)>,
    /// `additionalProperties`
    pub additional: Option<SubschemaId>,
    /// `propertyNames`
    pub names: Option<SubschemaId>,
    /// `dependencies`, `dependentRequired` and `dependentSchemas`
    pub dependents: Vec<DependentRule>,
}

/// What must hold of an object that has a member.
#[derive(Debug)]
pub struct DependentRule {
    pub(super) keyword: &'static str,
    /// The number of the member.
    pub member: usize,
    /// What must hold.
    pub needs: DependentNeeds,
}

/// What must hold if a member is there.
#[derive(Debug)]
pub enum DependentNeeds {
    /// These members are there too, by their numbers.
    Members(Vec<usize>),
    /// A subschema accepts the object.
    Subschema(SubschemaId),
}

impl Subschema {
    /// The rules that are followed for the same value, of the applicators that are `meant`. The target of a dynamic reference is known only
    /// during the check, which bounds its depth.
    pub fn in_place(&self, meant: impl Fn(&Applicator) -> bool) -> Vec<SubschemaId> {
        let mut next = Vec::new();
        for applied in self.applied.iter().filter(|applied| meant(applied)) {
            match applied {
                Applicator::Ref(id) | Applicator::Not(id) => next.push(*id),
                Applicator::DynamicRef(_) => {}
                Applicator::All(list) | Applicator::Any(list) | Applicator::One(list) => next.extend(list),
                Applicator::If { condition, then, otherwise } => {
                    next.push(*condition);
                    next.extend(then.iter().chain(otherwise));
                }
            }
        }
        let dependents = self.object.iter().flat_map(|object| &object.dependents);
        next.extend(dependents.filter_map(|dependent| match dependent.needs {
            DependentNeeds::Subschema(id) => Some(id),
            DependentNeeds::Members(_) => None,
        }));
        next
    }
}

/// Subschemas for the same value.
#[derive(Debug)]
pub enum Applicator {
    /// A reference.
    Ref(SubschemaId),
    /// A reference that depends on the path that led to it.
    DynamicRef(DynamicRef),
    /// `allOf`
    All(Vec<SubschemaId>),
    /// `anyOf`
    Any(Vec<SubschemaId>),
    /// `oneOf`
    One(Vec<SubschemaId>),
    /// `not`
    Not(SubschemaId),
    /// `if`
    If {
        /// The condition.
        condition: SubschemaId,
        /// `then`
        then: Option<SubschemaId>,
        /// `else`
        otherwise: Option<SubschemaId>,
    },
}

/// A reference to the outermost of these that is being followed.
#[derive(Debug)]
pub struct DynamicRef {
    /// The target if none of them is.
    pub otherwise: SubschemaId,
    /// Each with the named schema that it belongs to.
    pub candidates: Vec<(ResourceId, SubschemaId)>,
}
