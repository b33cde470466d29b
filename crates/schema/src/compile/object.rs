//! Keywords of objects.

use std::collections::BTreeMap;

use super::{Compiler, Object};
use crate::draft::Draft;
use crate::ids::SubschemaId;
use crate::property_map::{Property, PropertyMap};
use crate::registry::ValueLocation;
use crate::subschema::{DependentNeeds, DependentRule, ObjectRules};
use json::ValueKind;

/// The rules of a member before all names are known.
#[derive(Default)]
struct Said {
    rules: Option<SubschemaId>,
    is_required: bool,
}

type Names = BTreeMap<String, Said>;

/// A dependent that names members by their names.
struct Early {
    keyword: &'static str,
    name: String,
    needs: Result<Vec<String>, SubschemaId>,
}

impl Compiler<'_> {
    pub(super) fn object(&mut self, object: Object) -> Option<Box<ObjectRules>> {
        let mut names = Names::new();
        for (name, at) in self.named(object, "properties") {
            names.entry(name).or_default().rules = Some(self.id_within(object, at));
        }
        for name in self.member(object, "required").map(|list| self.texts(list, "required")).unwrap_or_default() {
            names.entry(name).or_default().is_required = true;
        }
        let early = self.dependents(object);
        for Early { name, needs, .. } in &early {
            let needed = needs.as_ref().map(Vec::as_slice).unwrap_or_default();
            [name].into_iter().chain(needed).for_each(|name| {
                names.entry(name.clone()).or_default();
            });
        }
        let mut rules = ObjectRules {
            count: self.span(object, "minProperties", "maxProperties"),
            required: names.values().filter(|said| said.is_required).count(),
            members: members(names),
            patterns: self.patterns(object),
            additional: self.schema(object, "additionalProperties"),
            names: if object.draft >= Draft::Six { self.schema(object, "propertyNames") } else { None },
            dependents: Vec::new(),
        };
        let number = |name: &String| rules.members.find(name);
        let link = |early: Early| {
            let needs = match early.needs {
                Ok(names) => DependentNeeds::Members(names.iter().filter_map(number).collect()),
                Err(id) => DependentNeeds::Subschema(id),
            };
            Some(DependentRule { keyword: early.keyword, member: number(&early.name)?, needs })
        };
        let dependents = early.into_iter().filter_map(link).collect();
        rules.dependents = dependents;
        let says_something = !rules.count.is_any()
            || !rules.members.is_empty()
            || !rules.patterns.is_empty()
            || rules.additional.is_some()
            || rules.names.is_some();
        says_something.then(|| Box::new(rules))
    }

    fn patterns(&mut self, object: Object) -> Vec<(crate::ecma_pattern::SchemaPattern, SubschemaId)> {
        let named = self.named(object, "patternProperties");
        // A name precedes its value.
        let mut compile = |(_, at): (String, usize)| {
            let pattern = self.pattern(ValueLocation { at: at - 1, ..object.place })?;
            Some((pattern, self.id_within(object, at)))
        };
        named.into_iter().filter_map(&mut compile).collect()
    }

    fn dependents(&mut self, object: Object) -> Vec<Early> {
        let mut all = Vec::new();
        for (name, at) in self.named(object, "dependencies") {
            let is_list = self.view(object.place).kind(at) == ValueKind::Array;
            let needs = if is_list {
                Ok(self.texts(ValueLocation { at, ..object.place }, "dependencies"))
            } else {
                Err(self.id_within(object, at))
            };
            all.push(Early { keyword: "dependencies", name, needs });
        }
        if object.draft >= Draft::Of2019 {
            for (name, at) in self.named(object, "dependentRequired") {
                let needs = Ok(self.texts(ValueLocation { at, ..object.place }, "dependentRequired"));
                all.push(Early { keyword: "dependentRequired", name, needs });
            }
            for (name, at) in self.named(object, "dependentSchemas") {
                let needs = Err(self.id_within(object, at));
                all.push(Early { keyword: "dependentSchemas", name, needs });
            }
        }
        all
    }

    /// A list of names.
    fn texts(&mut self, list: ValueLocation, keyword: &str) -> Vec<String> {
        let view = self.view(list);
        let children: Vec<usize> = view.children(list.at).collect();
        if view.kind(list.at) != ValueKind::Array || children.iter().any(|at| view.kind(*at) != ValueKind::Text) {
            self.wrong(list, format!("`{keyword}` must be a list of strings"));
            return Vec::new();
        }
        children.into_iter().map(|at| view.text(at).into_owned()).collect()
    }
}

fn members(names: Names) -> PropertyMap {
    let member = |(name, said): (String, Said)| Property::new(&name, said.rules, said.is_required);
    PropertyMap::new(names.into_iter().map(member).collect())
}
