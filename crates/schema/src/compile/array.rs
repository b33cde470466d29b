//! Keywords of arrays.

use super::{Compiler, Object};
use crate::draft::Draft;
use crate::subschema::{ArrayRules, ContainsRule};
use json::ValueKind;

impl Compiler<'_> {
    pub(super) fn array(&mut self, object: Object) -> Option<Box<ArrayRules>> {
        let mut rules = ArrayRules { count: self.span(object, "minItems", "maxItems"), ..ArrayRules::default() };
        rules.unique = self
            .member_of_kind(object, "uniqueItems", ValueKind::Boolean, "true or false")
            .is_some_and(|place| self.view(place).raw(place.at) == "true");
        self.elements(object, &mut rules);
        if object.draft >= Draft::Six {
            rules.contains = self.contains(object);
        }
        let says_something = !rules.count.is_any()
            || rules.unique
            || !rules.prefix.is_empty()
            || rules.rest.is_some()
            || rules.contains.is_some();
        says_something.then(|| Box::new(rules))
    }

    fn elements(&mut self, object: Object, rules: &mut ArrayRules) {
        let is_list =
            self.member(object, "items").is_some_and(|place| self.view(place).kind(place.at) == ValueKind::Array);
        if object.draft >= Draft::Of2020 {
            if is_list {
                self.refuse_list(object);
                return;
            }
            rules.prefix = self.schemas(object, "prefixItems");
            rules.rest = self.schema(object, "items");
        } else if is_list {
            rules.prefix = self.schemas(object, "items");
            rules.rest = self.schema(object, "additionalItems");
        } else {
            rules.rest = self.schema(object, "items");
        }
    }

    /// A schema of an older draft that doesn't name its draft has a list here.
    fn refuse_list(&mut self, object: Object) {
        let Some(items) = self.member(object, "items") else { return };
        let message = "`items` is one schema: call a list of schemas `prefixItems`, or name the draft that the \
                       schema is written for, as in \
                       \"$schema\": \"http://json-schema.org/draft-07/schema#\"";
        self.wrong(items, message);
    }

    fn contains(&mut self, object: Object) -> Option<ContainsRule> {
        let rules = self.schema(object, "contains")?;
        let mut count = crate::subschema::CountRange { min: 1, ..Default::default() };
        if object.draft >= Draft::Of2019 {
            let said = self.span(object, "minContains", "maxContains");
            let has_min = self.member(object, "minContains").is_some();
            count = crate::subschema::CountRange { min: if has_min { said.min } else { 1 }, max: said.max };
        }
        Some(ContainsRule { rules, count, marks: object.draft >= Draft::Of2020 })
    }
}
