//! Reads the keys of one step, and gathers their mistakes.

use std::str::FromStr;

use super::diagnostic::{StepDiagnostic, StepLocation};
use super::spec::{StepSpec, StepValue};
use expression::Expression;
use json::JsonPointer;
use pattern::Pattern;

/// The keys of a step while it is compiled.
pub(super) struct Options<'s> {
    pub(super) step: usize,
    pub(super) spec: &'s StepSpec,
    pub(super) mistakes: Vec<StepDiagnostic>,
}

impl<'s> Options<'s> {
    pub(super) fn mistake(&mut self, at: StepLocation, message: impl Into<String>) -> &mut StepDiagnostic {
        self.mistakes.push(StepDiagnostic::new(self.step, at, message));
        self.mistakes.last_mut().expect("it was just pushed")
    }

    /// Reports a wrong value.
    pub(super) fn wrong<T>(&mut self, key: &str, message: impl Into<String>) -> Option<T> {
        self.mistake(StepLocation::Value(key.to_owned()), message);
        None
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.spec.get(key).is_some()
    }

    fn wrong_kind<T>(&mut self, key: &str, wanted: &str, setting: &StepValue) -> Option<T> {
        self.wrong(key, format!("should be {wanted}, but is {}", setting.kind()))
    }

    pub(super) fn text(&mut self, key: &str) -> Option<&'s str> {
        match self.spec.get(key)? {
            StepValue::Text(text) => Some(text),
            other => self.wrong_kind(key, "a string", other),
        }
    }

    /// A required text.
    pub(super) fn needed_text(&mut self, key: &str, example: &str) -> Option<&'s str> {
        self.need(key, example)?;
        self.text(key)
    }

    /// Reports a key that is missing.
    pub(super) fn need(&mut self, key: &str, example: &str) -> Option<()> {
        if self.has(key) {
            return Some(());
        }
        let mistake = self.mistake(StepLocation::Step, format!("`{key}` is missing"));
        mistake.help = Some(format!("add it, such as {key} = {example}"));
        None
    }

    pub(super) fn boolean(&mut self, key: &str) -> Option<bool> {
        match self.spec.get(key)? {
            StepValue::Bool(value) => Some(*value),
            other => self.wrong_kind(key, "true or false", other),
        }
    }

    /// A whole number from `least` to `most`.
    pub(super) fn count(&mut self, key: &str, least: usize, most: usize) -> Option<usize> {
        match self.spec.get(key)? {
            StepValue::Integer(number) => {
                let number = usize::try_from(*number).ok().filter(|number| (least..=most).contains(number));
                number.or_else(|| self.wrong(key, format!("should be from {least} to {most}")))
            }
            other => self.wrong_kind(key, "a whole number", other),
        }
    }

    pub(super) fn number(&mut self, key: &str) -> Option<f64> {
        match self.spec.get(key)? {
            StepValue::Integer(number) => {
                #[allow(clippy::cast_precision_loss, reason = "so large a number needs no precision")]
                let number = *number as f64;
                Some(number)
            }
            StepValue::Float(number) => Some(*number),
            other => self.wrong_kind(key, "a number", other),
        }
    }

    /// One of some words.
    pub(super) fn choice<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(key)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        found.or_else(|| {
            let known: Vec<_> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            self.wrong(key, format!("should be one of {}", known.join(", ")))
        })
    }

    /// A JSON pointer.
    pub(super) fn pointer(&mut self, key: &str) -> Option<JsonPointer> {
        let text = self.text(key)?;
        self.parse_pointer(text, StepLocation::Value(key.to_owned()))
    }

    /// A JSON pointer that isn't that of the whole document.
    pub(super) fn part_pointer(&mut self, key: &str) -> Option<JsonPointer> {
        let pointer = self.pointer(key)?;
        if pointer.as_str().is_empty() {
            return self.wrong(key, "this is the whole payload: name a part of it, such as \"/status\"");
        }
        Some(pointer)
    }

    /// One JSON pointer, or a list of them.
    pub(super) fn pointers(&mut self, key: &str) -> Option<Vec<JsonPointer>> {
        match self.spec.get(key)? {
            StepValue::Text(_) => self.pointer(key).map(|pointer| vec![pointer]),
            StepValue::List(elements) if !elements.is_empty() => {
                let read: Vec<_> = elements
                    .iter()
                    .enumerate()
                    .map(|(number, element)| match element {
                        StepValue::Text(text) => {
                            self.parse_pointer(text, StepLocation::Element(key.to_owned(), number))
                        }
                        other => {
                            let message = format!("should be a JSON pointer, but is {}", other.kind());
                            self.mistake(StepLocation::Element(key.to_owned(), number), message);
                            None
                        }
                    })
                    .collect();
                read.into_iter().collect()
            }
            other => self.wrong_kind(key, "a JSON pointer or a list of them", other),
        }
    }

    fn parse_pointer(&mut self, text: &str, at: StepLocation) -> Option<JsonPointer> {
        match JsonPointer::from_str(text) {
            Ok(pointer) => Some(pointer),
            Err(invalid) => {
                let mistake = self.mistake(at, invalid.to_string());
                mistake.help = (!text.starts_with('/')).then(|| format!("write \"/{text}\""));
                None
            }
        }
    }

    pub(super) fn expression(&mut self, key: &str) -> Option<Expression> {
        match self.text(key)?.parse::<Expression>() {
            Ok(expression) => Some(expression),
            Err(wrong) => {
                self.mistake(StepLocation::Within(key.to_owned(), wrong.place()), wrong.message());
                None
            }
        }
    }

    pub(super) fn pattern(&mut self, key: &str) -> Option<Pattern> {
        match self.text(key)?.parse::<Pattern>() {
            Ok(pattern) => Some(pattern),
            Err(wrong) => self.wrong(key, wrong.to_string()),
        }
    }
}
