//! The drafts of JSON Schema, and which keywords hold further schemas in each.

/// A draft. Newer ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Draft {
    Four,
    Six,
    Seven,
    Of2019,
    Of2020,
}

/// The value of `$schema`, without the empty fragment that some write.
const NAMES: [(&str, Draft); 5] = [
    ("json-schema.org/draft-04/schema", Draft::Four),
    ("json-schema.org/draft-06/schema", Draft::Six),
    ("json-schema.org/draft-07/schema", Draft::Seven),
    ("json-schema.org/draft/2019-09/schema", Draft::Of2019),
    ("json-schema.org/draft/2020-12/schema", Draft::Of2020),
];

/// How a keyword holds schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    One,
    List,
    /// One, or a list.
    Either,
    Named,
}

/// Keywords that hold schemas, the first draft that has each, and the first that no longer has it.
const KEYWORDS: [(&str, Holds, Draft, Option<Draft>); 23] = [
    ("additionalItems", Holds::One, Draft::Four, Some(Draft::Of2020)),
    ("additionalProperties", Holds::One, Draft::Four, None),
    ("allOf", Holds::List, Draft::Four, None),
    ("anyOf", Holds::List, Draft::Four, None),
    ("contains", Holds::One, Draft::Six, None),
    ("contentSchema", Holds::One, Draft::Of2019, None),
    ("definitions", Holds::Named, Draft::Four, None),
    ("$defs", Holds::Named, Draft::Of2019, None),
    ("dependencies", Holds::Named, Draft::Four, None),
    ("dependentSchemas", Holds::Named, Draft::Of2019, None),
    ("else", Holds::One, Draft::Seven, None),
    ("if", Holds::One, Draft::Seven, None),
    ("items", Holds::Either, Draft::Four, Some(Draft::Of2020)),
    ("items", Holds::One, Draft::Of2020, None),
    ("not", Holds::One, Draft::Four, None),
    ("oneOf", Holds::List, Draft::Four, None),
    ("patternProperties", Holds::Named, Draft::Four, None),
    ("prefixItems", Holds::List, Draft::Of2020, None),
    ("properties", Holds::Named, Draft::Four, None),
    ("propertyNames", Holds::One, Draft::Six, None),
    ("then", Holds::One, Draft::Seven, None),
    ("unevaluatedItems", Holds::One, Draft::Of2019, None),
    ("unevaluatedProperties", Holds::One, Draft::Of2019, None),
];

impl Draft {
    /// The draft that `$schema` names.
    pub(super) fn of_name(text: &str) -> Option<Self> {
        let name = text.trim_end_matches('#');
        let name = name.strip_prefix("http://").or_else(|| name.strip_prefix("https://"))?;
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, draft)| *draft)
    }

    /// The keyword that names a schema.
    pub(super) const fn id_keyword(self) -> &'static str {
        if matches!(self, Self::Four) { "id" } else { "$id" }
    }

    /// Whether the neighbours of a `$ref` are ignored.
    pub(super) fn ref_is_alone(self) -> bool {
        self <= Self::Seven
    }

    /// How a keyword holds schemas, if it does.
    pub(super) fn holds(self, keyword: &str) -> Option<Holds> {
        let is_here = |since: Draft, until: Option<Draft>| since <= self && until.is_none_or(|until| self < until);
        let found = KEYWORDS.iter().find(|(name, _, since, until)| *name == keyword && is_here(*since, *until));
        found.map(|(_, holds, ..)| *holds)
    }
}
