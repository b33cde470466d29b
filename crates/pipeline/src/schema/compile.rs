//! Makes rules of documents. What is wrong with a schema is found here and never while events come.

mod array;
mod object;
mod same;
mod scalar;

use std::collections::{BTreeSet, HashMap, VecDeque};

use event::limits::{SCHEMA_MISTAKES_MAX, SCHEMA_RULES_MAX};

use super::Options;
use super::draft::Draft;
use super::error::InvalidSchema;
use super::library::{Library, Place};
use super::slips;
use super::tree::{Allowed, Applied, Id, ResourceId, Rules};
use crate::values::{Kind, View};

/// All rules of a schema. The first are those of its root.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) rules: Vec<Rules>,
    /// Whether references depend on the way that led to them.
    pub(super) is_dynamic: bool,
    /// The names of the documents that it refers to, those that it was given and no others.
    pub(super) documents: Vec<String>,
    /// Names that are nearly keywords.
    pub(super) slips: Vec<InvalidSchema>,
}

pub(super) fn compile(name: &str, text: &str, options: &Options<'_>) -> Result<Compiled, Vec<InvalidSchema>> {
    let mut library = Library::new(options.documents);
    let root = library.add(name, text, Draft::Of2020).map_err(|mistake| vec![mistake])?;
    let mut compiler = Compiler {
        library,
        formats: options.formats,
        numbers: HashMap::new(),
        queue: VecDeque::new(),
        rules: Vec::new(),
        mistakes: Vec::new(),
        slips: Vec::new(),
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
    let Compiler { library, mut rules, mistakes, slips, dynamic, .. } = compiler;
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    rules.shrink_to_fit();
    Ok(Compiled { rules, is_dynamic: !dynamic.is_empty(), documents: library.referred_to(), slips })
}

struct Compiler<'m> {
    library: Library<'m>,
    formats: bool,
    numbers: HashMap<Place, Id>,
    queue: VecDeque<Place>,
    rules: Vec<Rules>,
    mistakes: Vec<InvalidSchema>,
    slips: Vec<InvalidSchema>,
    /// Dynamic references: whose they are, and the anchor, or none for a `$recursiveRef`.
    dynamic: BTreeSet<(Id, Option<String>)>,
}

/// One schema that is an object, and what may be asked of it.
#[derive(Clone, Copy)]
struct Object {
    place: Place,
    draft: Draft,
    keywords: Keywords,
}

/// Which names an object may have: a bit for each of 64 kinds of them. It spares most looks for keywords that aren't there.
#[derive(Clone, Copy)]
struct Keywords(u64);

impl Keywords {
    fn of(view: View<'_>, at: usize) -> Self {
        let bits = view.members(at).map(|(name, _)| Self::bit(&view.text(name)));
        Self(bits.fold(0, |all, bit| all | bit))
    }

    /// By the length and the last letter.
    fn bit(name: &str) -> u64 {
        let last = name.bytes().next_back().unwrap_or_default();
        1 << ((name.len() * 7 + usize::from(last)) % 64)
    }

    fn may_have(self, keyword: &str) -> bool {
        self.0 & Self::bit(keyword) != 0
    }
}

impl Compiler<'_> {
    /// The number of the schema at a place; where it is new it waits for its turn.
    fn id(&mut self, place: Place) -> Id {
        let next = Id(self.numbers.len());
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
                    return self
                        .wrong(place, format!("there are more than {SCHEMA_RULES_MAX} schemas within each other"));
                }
                let rules = self.rules_of(place);
                self.rules.push(rules);
                if self.mistakes.len() >= SCHEMA_MISTAKES_MAX {
                    return;
                }
            }
            // Each reference may lead to any of the documents, also those that were read after it was met.
            self.link_dynamic();
            if self.queue.is_empty() {
                return;
            }
        }
    }

    fn wrong(&mut self, place: Place, message: impl Into<String>) {
        let mistake = self.library.mistake(place, message);
        self.mistakes.push(mistake);
    }

    fn view(&self, place: Place) -> View<'_> {
        self.library.view(place.document)
    }

    fn rules_of(&mut self, place: Place) -> Rules {
        let draft = self.library.resource(place.resource).draft;
        let whole_fractions = draft > Draft::Four;
        let mut rules = Rules {
            location: self.library.location(place).into(),
            resource: place.resource,
            is_false: false,
            allowed: Allowed::all(whole_fractions),
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
            // Draft 4 has these beside `additionalProperties` and `additionalItems` only; elsewhere they do no harm.
            Kind::Boolean => rules.is_false = view.raw(place.at) == "false",
            Kind::Object => {
                let keywords = Keywords::of(view, place.at);
                self.slips(place);
                self.fill(Object { place, draft, keywords }, &mut rules);
            }
            _ => self.wrong(place, "a schema is an object, true or false"),
        }
        rules
    }

    /// Takes note of names that are nearly keywords.
    fn slips(&mut self, place: Place) {
        let view = self.view(place);
        let meant = |(name, _)| Some((name, slips::meant(&view.text(name))?));
        let found: Vec<_> = view.members(place.at).filter_map(meant).collect();
        for (at, keyword) in found.into_iter().take(SCHEMA_MISTAKES_MAX.saturating_sub(self.slips.len())) {
            let message = format!(
                "`{}` is no keyword, and asserts nothing; did you mean `{keyword}`?",
                self.view(place).text(at)
            );
            self.slips.push(self.library.mistake(Place { at, ..place }, message));
        }
    }

    fn fill(&mut self, object: Object, rules: &mut Rules) {
        if object.draft.ref_is_alone() && self.member(object, "$ref").is_some() {
            rules.applied.extend(self.reference(object, "$ref").map(Applied::Ref));
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

    fn member(&self, object: Object, keyword: &str) -> Option<Place> {
        if !object.keywords.may_have(keyword) {
            return None;
        }
        let at = self.view(object.place).member(object.place.at, keyword)?;
        Some(Place { at, ..object.place })
    }

    /// A keyword whose value has one kind. Another is a mistake.
    fn member_of_kind(&mut self, object: Object, keyword: &str, kind: Kind, wanted: &str) -> Option<Place> {
        let place = self.member(object, keyword)?;
        if self.view(place).kind(place.at) == kind {
            return Some(place);
        }
        self.wrong(place, format!("`{keyword}` is {wanted}"));
        None
    }

    fn schema(&mut self, object: Object, keyword: &str) -> Option<Id> {
        let place = self.member(object, keyword)?;
        Some(self.id_within(object, place.at))
    }

    fn id_within(&mut self, object: Object, at: usize) -> Id {
        let place = self.library.within(object.place, at);
        self.id(place)
    }

    fn schemas(&mut self, object: Object, keyword: &str) -> Vec<Id> {
        let Some(list) = self.member_of_kind(object, keyword, Kind::Array, "a list of schemas") else {
            return Vec::new();
        };
        let children: Vec<usize> = self.view(list).children(list.at).collect();
        if children.is_empty() && !(keyword == "items" || keyword == "prefixItems") {
            self.wrong(list, format!("`{keyword}` is empty"));
        }
        children.into_iter().map(|child| self.id_within(object, child)).collect()
    }

    /// The names and values of a keyword that is an object.
    fn named(&mut self, object: Object, keyword: &str) -> Vec<(String, usize)> {
        let Some(named) = self.member_of_kind(object, keyword, Kind::Object, "an object of schemas") else {
            return Vec::new();
        };
        let view = self.view(named);
        view.members(named.at).map(|(name, value)| (view.text(name).into_owned(), value)).collect()
    }

    fn reference(&mut self, object: Object, keyword: &str) -> Option<Id> {
        let place = self.find(object, keyword)?;
        Some(self.id(place))
    }

    fn find(&mut self, object: Object, keyword: &str) -> Option<Place> {
        let at = self.member_of_kind(object, keyword, Kind::Text, "a reference, a string")?;
        let reference = self.view(at).text(at.at).into_owned();
        // It leads from where the schema's name says.
        match self.library.find(at, &reference) {
            Ok(place) => Some(place),
            Err(mistake) => {
                self.mistakes.push(mistake);
                None
            }
        }
    }

    /// Tells every dynamic reference where it may lead.
    fn link_dynamic(&mut self) {
        for (id, anchor) in self.dynamic.clone() {
            let places = match &anchor {
                Some(anchor) => self.library.dynamic(anchor),
                None => self.library.recursive(),
            };
            let candidates: Vec<(ResourceId, Id)> =
                places.into_iter().map(|place| (place.resource, self.id(place))).collect();
            for applied in &mut self.rules[id.0].applied {
                if let Applied::Dynamic(dynamic) = applied {
                    dynamic.candidates.clone_from(&candidates);
                }
            }
        }
    }
}
