//! Keywords that apply further schemas to the same value.

use super::{Compiler, Object};
use crate::schema::draft::Draft;
use crate::schema::tree::{Applied, Dynamic, Rules};
use crate::schema::uri;
use crate::values::Kind;

impl Compiler<'_> {
    pub(super) fn same(&mut self, object: Object, rules: &mut Rules) {
        let Object { draft, .. } = object;
        rules.applied.extend(self.reference(object, "$ref").map(Applied::Ref));
        if draft == Draft::Of2019 {
            rules.applied.extend(self.dynamic(object, "$recursiveRef"));
        }
        if draft == Draft::Of2020 {
            rules.applied.extend(self.dynamic(object, "$dynamicRef"));
        }
        for (keyword, apply) in [
            ("allOf", Applied::All as fn(_) -> _),
            ("anyOf", Applied::Any as fn(_) -> _),
            ("oneOf", Applied::One as fn(_) -> _),
        ] {
            let list = self.schemas(object, keyword);
            if !list.is_empty() {
                rules.applied.push(apply(list));
            }
        }
        rules.applied.extend(self.schema(object, "not").map(Applied::Not));
        if draft >= Draft::Seven
            && let Some(condition) = self.schema(object, "if")
        {
            let (then, otherwise) = (self.schema(object, "then"), self.schema(object, "else"));
            rules.applied.push(Applied::If { condition, then, otherwise });
        }
    }

    /// A reference that may lead elsewhere, depending on the way that led to it.
    fn dynamic(&mut self, object: Object, keyword: &str) -> Option<Applied> {
        let found = self.find(object, keyword)?;
        let otherwise = self.id(found);
        let anchor = if keyword == "$dynamicRef" {
            let at = self.member_of_kind(object, keyword, Kind::Text, "a reference, a string")?;
            let (_, anchor) = uri::split_fragment(&self.view(at).text(at.at));
            self.library.is_dynamic(found, &anchor).then_some(Some(anchor))
        } else {
            self.library.resource(found.resource).is_recursive.then_some(None)
        };
        let Some(anchor) = anchor else { return Some(Applied::Ref(otherwise)) };
        let id = self.id(object.place);
        self.dynamic.insert((id, anchor));
        Some(Applied::Dynamic(Dynamic { otherwise, candidates: Vec::new() }))
    }
}
