//! Keywords that apply further schemas to the same value.

use super::{Compiler, Object};
use crate::draft::Draft;
use crate::subschema::{Applicator, DynamicRef, Subschema};
use crate::uri;
use json::ValueKind;

impl Compiler<'_> {
    pub(super) fn same(&mut self, object: Object, rules: &mut Subschema) {
        let Object { draft, .. } = object;
        rules.applied.extend(self.reference(object, "$ref").map(Applicator::Ref));
        if draft == Draft::Of2019 {
            rules.applied.extend(self.dynamic(object, "$recursiveRef"));
        }
        if draft == Draft::Of2020 {
            rules.applied.extend(self.dynamic(object, "$dynamicRef"));
        }
        for (keyword, apply) in [
            ("allOf", Applicator::All as fn(_) -> _),
            ("anyOf", Applicator::Any as fn(_) -> _),
            ("oneOf", Applicator::One as fn(_) -> _),
        ] {
            let list = self.schemas(object, keyword);
            if !list.is_empty() {
                rules.applied.push(apply(list));
            }
        }
        rules.applied.extend(self.schema(object, "not").map(Applicator::Not));
        if draft >= Draft::Seven
            && let Some(condition) = self.schema(object, "if")
        {
            let (then, otherwise) = (self.schema(object, "then"), self.schema(object, "else"));
            rules.applied.push(Applicator::If { condition, then, otherwise });
        }
    }

    /// A reference whose target depends on the path that led to it.
    fn dynamic(&mut self, object: Object, keyword: &str) -> Option<Applicator> {
        let found = self.find(object, keyword)?;
        let otherwise = self.id(found);
        let anchor = if keyword == "$dynamicRef" {
            let at = self.member_of_kind(object, keyword, ValueKind::Text, "a string with a reference")?;
            let (_, anchor) = uri::split_fragment(&self.view(at).text(at.at));
            self.registry.is_dynamic(found, &anchor).then_some(Some(anchor))
        } else {
            self.registry.resource(found.resource).is_recursive.then_some(None)
        };
        let Some(anchor) = anchor else { return Some(Applicator::Ref(otherwise)) };
        let id = self.id(object.place);
        self.dynamic.insert((id, anchor));
        Some(Applicator::DynamicRef(DynamicRef { otherwise, candidates: Vec::new() }))
    }
}
