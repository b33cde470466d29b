//! Keywords of kinds, values, numbers and strings.

use super::{Compiler, Object};
use crate::draft::Draft;
use crate::ecma_pattern::SchemaPattern;
use crate::format::StringFormat;
use crate::number::{DIVISOR_DIGITS_MAX, Divisor, NumberLiteral, is_whole};
use crate::registry::ValueLocation;
use crate::subschema::{
    AllowedTypes, Bound, BoundSide, CountRange, EnumValues, NumberRules, StringRules, Subschema, TYPE_NAMES,
};
use json::IndexedText;
use json::ValueKind;

impl Compiler<'_> {
    pub(super) fn scalars(&mut self, object: Object, rules: &mut Subschema) {
        if let Some(place) = self.member(object, "type") {
            rules.allowed = self.kinds(place, rules.allowed.whole_fractions);
        }
        rules.values = self.values(object).map(Box::new);
        rules.number = self.number(object).map(Box::new);
        rules.text = self.text(object);
    }

    fn kinds(&mut self, place: ValueLocation, whole_fractions: bool) -> AllowedTypes {
        let view = self.view(place);
        let names: Vec<usize> =
            if view.kind(place.at) == ValueKind::Array { view.children(place.at).collect() } else { vec![place.at] };
        let mut allowed = AllowedTypes::nothing(whole_fractions);
        for at in names {
            let view = self.view(place);
            let is_known = view.kind(at) == ValueKind::Text && allowed.add(&view.text(at));
            if !is_known {
                self.wrong(ValueLocation { at, ..place }, format!("a type must be one of {}", TYPE_NAMES.join(", ")));
            }
        }
        allowed
    }

    fn values(&mut self, object: Object) -> Option<EnumValues> {
        if object.draft >= Draft::Six
            && let Some(place) = self.member(object, "const")
        {
            let mut values = self.gather("const", place, &[place.at]);
            // Both together are rare: `enum` is then compiled as a further schema.
            if let Some(list) = self.member(object, "enum") {
                values
                    .texts
                    .retain(|text| self.lists(list, &IndexedText::new(&serde_json::Value::from(&**text).to_string())));
                let others = std::mem::take(&mut values.others);
                values.others = others.into_iter().filter(|value| self.lists(list, value)).collect();
            }
            return Some(values);
        }
        let list = self.member_of_kind(object, "enum", ValueKind::Array, "a list of values")?;
        let elements: Vec<usize> = self.view(list).children(list.at).collect();
        Some(self.gather("enum", list, &elements))
    }

    fn lists(&self, list: ValueLocation, value: &IndexedText) -> bool {
        let view = self.view(list);
        view.children(list.at).any(|at| crate::equal::equal(view, at, value.view(), 0))
    }

    fn gather(&self, keyword: &'static str, place: ValueLocation, elements: &[usize]) -> EnumValues {
        let view = self.view(place);
        let is_text = |at: &&usize| view.kind(**at) == ValueKind::Text;
        let mut texts: Vec<Box<str>> = elements.iter().filter(is_text).map(|at| view.text(*at).into()).collect();
        texts.sort_unstable();
        let others = elements.iter().filter(|at| !is_text(at)).map(|at| IndexedText::new(view.raw(*at))).collect();
        EnumValues { keyword, texts, others, shown: view.raw(place.at).into() }
    }

    fn number(&mut self, object: Object) -> Option<NumberRules> {
        let mut rules = NumberRules::default();
        for (keyword, excluding, side, other) in [
            ("minimum", "exclusiveMinimum", BoundSide::Minimum, BoundSide::Above),
            ("maximum", "exclusiveMaximum", BoundSide::Maximum, BoundSide::Below),
        ] {
            let old = object.draft == Draft::Four;
            let excludes = old
                && self
                    .member_of_kind(object, excluding, ValueKind::Boolean, "true or false")
                    .is_some_and(|place| self.view(place).raw(place.at) == "true");
            rules.bounds.extend(self.bound(object, keyword, if excludes { other } else { side }));
            if !old {
                rules.bounds.extend(self.bound(object, excluding, other));
            }
        }
        if let Some(place) = self.member_of_kind(object, "multipleOf", ValueKind::Number, "a number") {
            rules.multiple_of = Divisor::new(self.view(place).raw(place.at));
            if rules.multiple_of.is_none() {
                self.wrong(
                    place,
                    format!("`multipleOf` must be a number above 0 with at most {DIVISOR_DIGITS_MAX} digits"),
                );
            }
        }
        (!rules.bounds.is_empty() || rules.multiple_of.is_some()).then_some(rules)
    }

    fn bound(&mut self, object: Object, keyword: &str, side: BoundSide) -> Option<Bound> {
        let place = self.member_of_kind(object, keyword, ValueKind::Number, "a number")?;
        Some(Bound { side, limit: NumberLiteral::new(self.view(place).raw(place.at)) })
    }

    fn text(&mut self, object: Object) -> Option<StringRules> {
        let length = self.span(object, "minLength", "maxLength");
        let pattern = self.member_of_kind(object, "pattern", ValueKind::Text, "a string with a regular expression");
        let pattern = pattern.and_then(|place| self.pattern(place));
        let format = self.member(object, "format").filter(|_| self.formats);
        let format = format.and_then(|place| StringFormat::of_name(&self.view(place).text(place.at)));
        (!length.is_any() || pattern.is_some() || format.is_some()).then_some(StringRules { length, pattern, format })
    }

    pub(super) fn pattern(&mut self, place: ValueLocation) -> Option<SchemaPattern> {
        match SchemaPattern::new(&self.view(place).text(place.at)) {
            Ok(pattern) => Some(pattern),
            Err(message) => {
                self.wrong(place, message);
                None
            }
        }
    }

    pub(super) fn span(&mut self, object: Object, min: &str, max: &str) -> CountRange {
        let mut count = |keyword| self.count(object, keyword);
        CountRange { min: count(min).unwrap_or(0), max: count(max).unwrap_or(usize::MAX) }
    }

    /// A count. One that no text can reach counts as the largest.
    fn count(&mut self, object: Object, keyword: &str) -> Option<usize> {
        let place = self.member_of_kind(object, keyword, ValueKind::Number, "a whole number")?;
        let text = self.view(place).raw(place.at);
        if text.starts_with('-') || !is_whole(text) {
            self.wrong(place, format!("`{keyword}` must be a whole number from 0"));
            return None;
        }
        let whole = text.split_once('.').map_or(text, |(whole, _)| whole);
        Some(whole.parse().unwrap_or(usize::MAX))
    }
}
