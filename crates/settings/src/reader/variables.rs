//! Settings in the environment, under their names and their old names.

use did_you_mean::nearest;

use super::SettingsReader;
use crate::diagnostics::{Diagnostic, SourceSpan};
use crate::environment::{FILE, InvalidVariable, PREFIX, expand};
use crate::old_name::UNTIL;
use crate::section::{Located, Section};

impl SettingsReader<'_> {
    /// Whether the document or the environment has the setting.
    #[must_use]
    pub fn is_set(&self, section: &Section<'_>, key: &str) -> bool {
        let is_variable = |name: String| self.environment.get(&name).is_some();
        section.get(key).is_some()
            || self.has_own_variables
                && (is_variable(section.variable(key)) || section.old_variable(key).is_some_and(is_variable))
    }

    /// The text of a setting, with the values of its variables, to compare two of them. It may be a secret.
    #[must_use]
    pub fn resolved(&self, section: &Section<'_>, key: &str) -> String {
        let written = section.get(key).map_or_else(String::new, |(span, _)| self.written(&span).to_owned());
        let filled = expand(&written, self.environment).unwrap_or(written);
        let variable = self.environment.get(&section.variable(key)).and_then(Result::ok);
        variable.map_or(filled, |value| value.text.into_owned())
    }

    pub(super) fn variable(&mut self, section: &Section<'_>, key: &str) -> Option<Located<String>> {
        if !self.has_own_variables {
            // Building the names of all unset variables takes 0.1 s with thousands of tables.
            return None;
        }
        let name = section.variable(key);
        let found = self.variable_named(&name);
        let Some(old) = section.old_variable(key) else { return found };
        self.asked_old.insert(old.clone());
        if self.environment.get(&old).is_none() {
            return found;
        }
        let file = self.environment.path_of_file(&old).map_or("", |_| FILE);
        let span = self.whole_source("environment", &format!("{old}{file}"));
        if self.environment.get(&name).is_some() {
            let title = format!("conflict: `{name}` and its old name `{old}{file}` are both set");
            self.push(Diagnostic::new(title, span, "the old name").help(format!("unset `{old}{file}`")));
            return found;
        }
        let title = format!("`{old}{file}` has a new name");
        self.push(Diagnostic::warning(title, span, format!("write `{name}{file}`")).help(UNTIL.to_owned()));
        self.value_of_variable(&old)
    }

    pub(super) fn variable_named(&mut self, name: &str) -> Option<Located<String>> {
        self.asked.insert(name.to_owned());
        self.value_of_variable(name)
    }

    fn value_of_variable(&mut self, name: &str) -> Option<Located<String>> {
        match self.environment.get(name)? {
            Ok(value) => {
                let (name, shown) = match value.file {
                    // The content may be a secret.
                    Some(path) => (format!("{name}{FILE}"), path),
                    None => (name.to_owned(), &*value.text),
                };
                let text = format!("{name}={shown}");
                let range = name.len() + 1..text.len();
                let span = SourceSpan { source: self.report.source("environment", text), range };
                Some(Located { value: value.text.into_owned(), span })
            }
            Err(unusable) => {
                let span = self.whole_source("environment", name);
                let (title, label) = match unusable {
                    InvalidVariable::NotText => {
                        (format!("invalid value for `{name}`: not UTF-8"), "the value of this variable".to_owned())
                    }
                    InvalidVariable::Padded => (
                        format!("invalid value for `{name}`: white space or a control character at an end"),
                        "remove it, or set the value in the configuration file".to_owned(),
                    ),
                    InvalidVariable::SetTwice => {
                        (format!("conflict: `{name}` and `{name}{FILE}` are both set"), "unset one of them".to_owned())
                    }
                    InvalidVariable::Unreadable(why) => {
                        (format!("invalid value for `{name}{FILE}`: cannot use the file"), why)
                    }
                };
                self.push(Diagnostic::new(title, span, label));
                None
            }
        }
    }

    /// Warns of variables that look like settings but set none: misspelt ones, and those of tables that the document lacks. Their
    /// values may be secrets and are not shown. `of_flags` are variables of flags that are no settings.
    pub fn check_variables(&mut self, of_flags: &[&str]) {
        let is_asked = |name: &str| {
            [Some(name), name.strip_suffix(FILE)]
                .into_iter()
                .flatten()
                .any(|name| self.asked.contains(name) || self.asked_old.contains(name))
        };
        let is_unknown = |name: &&str| !is_asked(name) && !of_flags.contains(name);
        let unknown: Vec<&str> = self.environment.own_names().filter(is_unknown).collect();
        for name in unknown {
            let help = self.nearest_variable(name, of_flags).map(|near| format!("did you mean `{near}`?"));
            let span = self.whole_source("environment", name);
            self.push(Diagnostic::warning(format!("unused variable `{name}`"), span, "no such setting").help(help));
        }
    }

    /// A known variable whose name is nearly this one, or ends nearly like it.
    fn nearest_variable<'n>(&'n self, name: &str, of_flags: &[&'n str]) -> Option<&'n str> {
        // A setting that allows unauthenticated access is never suggested.
        let opens = |name: &&str| name.ends_with("_ALLOW_ANONYMOUS");
        let known =
            || self.asked.iter().map(String::as_str).chain(of_flags.iter().copied()).filter(|name| !opens(name));
        let ends = || known().flat_map(|known| known.match_indices('_').map(move |(at, _)| (&known[at + 1..], known)));
        let near = nearest(name.strip_prefix(PREFIX)?, ends().map(|(end, _)| end))?;
        ends().find(|(end, _)| *end == near).map(|(_, known)| known)
    }
}

/// The parts of a variable's value between commas, without the blanks around them.
pub(super) fn split(found: &Located<String>) -> Located<Vec<Located<String>>> {
    let mut offset = 0;
    let mut parts = Vec::new();
    for part in found.value.split(',') {
        let blank = part.len() - part.trim_start().len();
        let value = part.trim().to_owned();
        parts.push(Located { span: found.span.part(offset + blank, value.len()), value });
        offset += part.len() + 1;
    }
    Located { value: parts, span: found.span.clone() }
}
