//! Compiles documents to rules. Errors in a schema are found here, and never while events arrive.

mod applicators;
mod array;
mod object;
mod scalar;

use std::collections::{BTreeSet, HashMap, VecDeque};

use limits::{SCHEMA_MISTAKES_MAX, SCHEMA_RULES_MAX};

use super::draft::Draft;
use super::error::InvalidSchema;
use super::ids::{ResourceId, SubschemaId};
use super::registry::{Registry, ValueLocation};
use super::subschema::{AllowedTypes, Applicator, CompiledSchema, Subschema};
use super::{Remark, SchemaOptions};
use json::{ValueKind, ValueView};

/// The compiled schema, and the remarks on its names.
pub(super) fn compile(
    name: &str,
    text: &str,
    options: &SchemaOptions<'_>,
    remark: Remark,
) -> Result<(CompiledSchema, Vec<InvalidSchema>), Vec<InvalidSchema>> {
    let mut registry = Registry::new(options.documents);
    let root = registry.add(name, text, Draft::Of2020).map_err(|mistake| vec![mistake])?;
    let mut compiler = Compiler {
        registry,
        formats: options.formats,
        numbers: HashMap::new(),
        queue: VecDeque::new(),
        rules: Vec::new(),
        mistakes: Vec::new(),
        remark,
        remarks: Vec::new(),
        dynamic: BTreeSet::new(),
    };
    compiler.id(root);
    compiler.run();
    if compiler.mistakes.is_empty()
        && let Err((id, message)) = super::cycle::check(&compiler.rules)
    {
        let place = compiler.numbers.iter().find(|(_, number)| **number == id).map(|(place, _)| *place);
        compiler.wrong(place.unwrap_or(root), message);
    }
    let Compiler { registry, mut rules, mistakes, remarks, dynamic, .. } = compiler;
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    rules.shrink_to_fit();
    let documents = registry.referred_to();
    Ok((CompiledSchema { subschemas: rules, is_dynamic: !dynamic.is_empty(), documents }, remarks))
}

struct Compiler<'m> {
    registry: Registry<'m>,
    formats: bool,
    numbers: HashMap<ValueLocation, SubschemaId>,
    queue: VecDeque<ValueLocation>,
    rules: Vec<Subschema>,
    mistakes: Vec<InvalidSchema>,
    remark: Remark,
    remarks: Vec<InvalidSchema>,
    /// Dynamic references: the subschema that has each, and the anchor, or none for a `$recursiveRef`.
    dynamic: BTreeSet<(SubschemaId, Option<String>)>,
}

/// A schema that is an object.
#[derive(Clone, Copy)]
struct Object {
    place: ValueLocation,
    draft: Draft,
    keywords: Keywords,
}

/// Which names an object may have: a bit for each of 64 kinds of them. It avoids most lookups of absent keywords.
#[derive(Clone, Copy)]
struct Keywords(u64);

impl Keywords {
    fn of(view: ValueView<'_>, at: usize) -> Self {
        let bits = view.members(at).map(|(name, _)| Self::bit(&view.text(name)));
        Self(bits.fold(0, |all, bit| all | bit))
    }

    /// By the length and the last byte.
    fn bit(name: &str) -> u64 {
        let last = name.bytes().next_back().unwrap_or_default();
        1 << ((name.len() * 7 + usize::from(last)) % 64)
    }

    fn may_have(self, keyword: &str) -> bool {
        self.0 & Self::bit(keyword) != 0
    }
}

impl Compiler<'_> {
    /// The number of the schema at a place; a new one is queued to be compiled.
    fn id(&mut self, place: ValueLocation) -> SubschemaId {
        let next = SubschemaId(self.numbers.len());
        let id = *self.numbers.entry(place).or_insert(next);
        if id == next {
            self.queue.push_back(place);
        }
        id
    }

    fn run(&mut self) {
        loop {
            while let Some(place) = self.queue.pop_front() {
                if self.rules.len() >= SCHEMA_RULES_MAX {
                    return self.wrong(
                        place,
                        format!("the schema has more than {SCHEMA_RULES_MAX} nested schemas: simplify it"),
                    );
                }
                let rules = self.rules_of(place);
                self.rules.push(rules);
                if self.mistakes.len() >= SCHEMA_MISTAKES_MAX {
                    return;
                }
            }
            // Each reference may point to any of the documents, also to those that were read later.
            self.link_dynamic();
            if self.queue.is_empty() {
                return;
            }
        }
    }

    fn wrong(&mut self, place: ValueLocation, message: impl Into<String>) {
        let mistake = self.registry.mistake(place, message);
        self.mistakes.push(mistake);
    }

    fn view(&self, place: ValueLocation) -> ValueView<'_> {
        self.registry.view(place.document)
    }

    fn rules_of(&mut self, place: ValueLocation) -> Subschema {
        let draft = self.registry.resource(place.resource).draft;
        let whole_fractions = draft > Draft::Four;
        let mut rules = Subschema {
            location: self.registry.location(place).into(),
            resource: place.resource,
            is_false: false,
            allowed: AllowedTypes::all(whole_fractions),
            values: None,
            number: None,
            text: None,
            array: None,
            object: None,
            applied: Vec::new(),
            unevaluated_items: None,
            unevaluated_properties: None,
        };
        let view = self.view(place);
        match view.kind(place.at) {
            // In draft 4 only `additionalProperties` and `additionalItems` may be a boolean; elsewhere it does no harm.
            ValueKind::Boolean => rules.is_false = view.raw(place.at) == "false",
            ValueKind::Object => {
                let keywords = Keywords::of(view, place.at);
                self.remark(place);
                self.fill(Object { place, draft, keywords }, &mut rules);
            }
            _ => self.wrong(place, "a schema must be an object, true or false"),
        }
        rules
    }

    /// Asks for remarks on the names of a schema.
    fn remark(&mut self, place: ValueLocation) {
        let (view, remark) = (self.view(place), self.remark);
        let remarked = |(name, _)| Some((name, remark(&view.text(name))?));
        let found: Vec<_> = view.members(place.at).filter_map(remarked).collect();
        for (at, message) in found.into_iter().take(SCHEMA_MISTAKES_MAX.saturating_sub(self.remarks.len())) {
            self.remarks.push(self.registry.mistake(ValueLocation { at, ..place }, message));
        }
    }

    fn fill(&mut self, object: Object, rules: &mut Subschema) {
        if object.draft.ref_is_alone() && self.member(object, "$ref").is_some() {
            rules.applied.extend(self.reference(object, "$ref").map(Applicator::Ref));
            return;
        }
        self.scalars(object, rules);
        rules.array = self.array(object);
        rules.object = self.object(object);
        self.same(object, rules);
        if object.draft >= Draft::Of2019 {
            rules.unevaluated_items = self.schema(object, "unevaluatedItems");
            rules.unevaluated_properties = self.schema(object, "unevaluatedProperties");
        }
    }

    fn member(&self, object: Object, keyword: &str) -> Option<ValueLocation> {
        if !object.keywords.may_have(keyword) {
            return None;
        }
        let at = self.view(object.place).member(object.place.at, keyword)?;
        Some(ValueLocation { at, ..object.place })
    }

    /// A keyword whose value has one kind. Another is a mistake.
    fn member_of_kind(
        &mut self,
        object: Object,
        keyword: &str,
        kind: ValueKind,
        wanted: &str,
    ) -> Option<ValueLocation> {
        let place = self.member(object, keyword)?;
        if self.view(place).kind(place.at) == kind {
            return Some(place);
        }
        self.wrong(place, format!("`{keyword}` must be {wanted}"));
        None
    }

    fn schema(&mut self, object: Object, keyword: &str) -> Option<SubschemaId> {
        let place = self.member(object, keyword)?;
        Some(self.id_within(object, place.at))
    }

    fn id_within(&mut self, object: Object, at: usize) -> SubschemaId {
        let place = self.registry.within(object.place, at);
        self.id(place)
    }

    fn schemas(&mut self, object: Object, keyword: &str) -> Vec<SubschemaId> {
        let Some(list) = self.member_of_kind(object, keyword, ValueKind::Array, "a list of schemas") else {
            return Vec::new();
        };
        let children: Vec<usize> = self.view(list).children(list.at).collect();
        if children.is_empty() && !(keyword == "items" || keyword == "prefixItems") {
            self.wrong(list, format!("`{keyword}` is empty: add a schema, or remove the keyword"));
        }
        children.into_iter().map(|child| self.id_within(object, child)).collect()
    }

    /// The names and values of a keyword that is an object.
    fn named(&mut self, object: Object, keyword: &str) -> Vec<(String, usize)> {
        let Some(named) = self.member_of_kind(object, keyword, ValueKind::Object, "an object of schemas") else {
            return Vec::new();
        };
        let view = self.view(named);
        view.members(named.at).map(|(name, value)| (view.text(name).into_owned(), value)).collect()
    }

    fn reference(&mut self, object: Object, keyword: &str) -> Option<SubschemaId> {
        let place = self.find(object, keyword)?;
        Some(self.id(place))
    }

    fn find(&mut self, object: Object, keyword: &str) -> Option<ValueLocation> {
        let at = self.member_of_kind(object, keyword, ValueKind::Text, "a string with a reference")?;
        let reference = self.view(at).text(at.at).into_owned();
        // It is relative to the schema's name.
        match self.registry.find(at, &reference) {
            Ok(place) => Some(place),
            Err(mistake) => {
                self.mistakes.push(mistake);
                None
            }
        }
    }

    /// Resolves the possible targets of every dynamic reference.
    fn link_dynamic(&mut self) {
        for (id, anchor) in self.dynamic.clone() {
            let places = match &anchor {
                Some(anchor) => self.registry.dynamic(anchor),
                None => self.registry.recursive(),
            };
            let candidates: Vec<(ResourceId, SubschemaId)> =
                places.into_iter().map(|place| (place.resource, self.id(place))).collect();
            for applied in &mut self.rules[id.0].applied {
                if let Applicator::DynamicRef(dynamic) = applied {
                    dynamic.candidates.clone_from(&candidates);
                }
            }
        }
    }
}
