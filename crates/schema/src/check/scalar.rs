//! Kinds, values, numbers and strings.

use std::cmp::Ordering;

use super::{Check, Checked};
use crate::equal::equal;
use crate::number::{is_plain_number, is_whole, small};
use crate::subschema::{BoundSide, EnumValues, NumberRules, StringRules, Subschema};
use json::ValueKind;

/// Bytes of a value that are compared in a step.
pub(super) const BYTES_PER_STEP: usize = 32;

impl Check<'_, '_> {
    pub(super) fn kind(&mut self, rules: &Subschema, kind: ValueKind, at: usize) -> Checked {
        let allowed = rules.allowed;
        let is_integer = || {
            let text = self.view.raw(at);
            if allowed.whole_fractions { is_whole(text) } else { is_plain_number(text) }
        };
        if allowed.takes(kind) || (kind == ValueKind::Number && allowed.takes_integers() && is_integer()) {
            return Ok(());
        }
        self.fail(rules, "type", at, || allowed.names())
    }

    pub(super) fn values(&mut self, rules: &Subschema, values: &EnumValues, kind: ValueKind, at: usize) -> Checked {
        let raw = self.view.raw(at);
        self.spend(raw.len() / BYTES_PER_STEP)?;
        let is_one = if kind == ValueKind::Text {
            let text = self.view.text(at);
            values.texts.binary_search_by(|known| (**known).cmp(&text)).is_ok()
        } else {
            self.spend(values.others.len() * (1 + raw.len() / BYTES_PER_STEP))?;
            values.others.iter().any(|other| equal(other.view(), 0, self.view, at))
        };
        if is_one {
            return Ok(());
        }
        let one = if values.keyword == "const" { "" } else { "one of " };
        self.fail(rules, values.keyword, at, || format!("{one}{}", cut(&values.shown)))
    }

    pub(super) fn number(&mut self, rules: &Subschema, number: &NumberRules, at: usize) -> Checked {
        let raw = self.view.raw(at);
        let small = small(raw);
        if small.is_none() {
            self.spend((1 + number.bounds.len()) * raw.len() / BYTES_PER_STEP * 4)?;
        }
        for bound in &number.bounds {
            let order = bound.limit.order_of_small(small, raw);
            let (holds, keyword, words) = match bound.side {
                BoundSide::Minimum => (order != Ordering::Less, "minimum", "at least"),
                BoundSide::Above => (order == Ordering::Greater, "exclusiveMinimum", "more than"),
                BoundSide::Maximum => (order != Ordering::Greater, "maximum", "at most"),
                BoundSide::Below => (order == Ordering::Less, "exclusiveMaximum", "less than"),
            };
            if !holds {
                self.fail(rules, keyword, at, || format!("{words} {}", bound.limit.text))?;
            }
        }
        match &number.multiple_of {
            Some(divisor) if !divisor.divides(raw) => {
                self.fail(rules, "multipleOf", at, || format!("a multiple of {}", divisor.text))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn text(&mut self, rules: &Subschema, text: &StringRules, at: usize) -> Checked {
        let value = self.view.text(at);
        self.length(rules, text, &value, at)?;
        if let Some(pattern) = &text.pattern {
            self.spend(pattern.steps(value.len()))?;
            if !pattern.is_in(&value) {
                self.fail(rules, "pattern", at, || format!("a string that matches {}", pattern.text))?;
            }
        }
        let Some(format) = text.format else { return Ok(()) };
        self.spend(value.len() / BYTES_PER_STEP)?;
        if format.is_that_of(&value) {
            return Ok(());
        }
        self.fail(rules, "format", at, || format!("the format {}", format.name()))
    }

    fn length(&mut self, rules: &Subschema, text: &StringRules, value: &str, at: usize) -> Checked {
        let length = text.length;
        // A character has one to four bytes: most strings are so short or so long that their characters needn't be counted.
        if length.is_any() || (value.len() <= length.max && value.len() / 4 >= length.min) {
            return Ok(());
        }
        self.spend(value.len() / BYTES_PER_STEP)?;
        let characters = value.chars().count();
        if characters < length.min {
            self.fail(rules, "minLength", at, || format!("at least {} characters", length.min))?;
        }
        if characters > length.max {
            self.fail(rules, "maxLength", at, || format!("at most {} characters", length.max))?;
        }
        Ok(())
    }
}

/// The part of a schema's text that an error shows.
fn cut(text: &str) -> String {
    const MAX: usize = 200;
    text.char_indices().nth(MAX).map_or_else(|| text.to_owned(), |(end, _)| format!("{}…", &text[..end]))
}
