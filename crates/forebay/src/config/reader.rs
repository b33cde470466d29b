//! Reads settings out of their three sources, a document, the environment and flags, and gathers what is
//! wrong on the way. A later source wins, but a mistake in an earlier one is reported all the same.
//!
//! What a setting means is not known here: the callers hand in a function that makes a value of its text.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::environment::{Environment, FILE, OF_FLAGS, PREFIX, Unreplaced, Unusable, expand};
use super::report::{Mistake, Report, SourceId, Spot};
use super::section::{Found, Section};
use super::suggest::nearest;

/// Why a text is no value of its setting.
#[derive(Clone, Debug)]
pub(super) struct Wrong {
    /// Goes on after the setting's name: "is not an address".
    pub(super) what: String,
    /// What is written under the spot.
    pub(super) label: String,
    /// What to do.
    pub(super) help: Option<String>,
}

impl Wrong {
    pub(super) fn new(what: impl Into<String>, label: impl Into<String>) -> Self {
        Self { what: what.into(), label: label.into(), help: None }
    }

    pub(super) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

/// What a word stands for.
#[cfg(any(feature = "elasticsearch", feature = "redis"))]
pub(super) fn one_of<T: Copy>(words: &[(&str, T)], text: &str, what: &str) -> Result<T, Wrong> {
    let known = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
    known.ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        Wrong::new(what, format!("wanted one of {}", words.join(", ")))
    })
}

/// Reads settings and gathers mistakes.
#[derive(Debug)]
pub(super) struct Reader<'e> {
    environment: &'e Environment,
    /// Whether any of its variables could be a setting.
    has_own_variables: bool,
    report: Report,
    /// The variables that stand for a setting of this configuration, set or not, and those that its texts name.
    asked: BTreeSet<String>,
}

impl<'e> Reader<'e> {
    pub(super) fn new(environment: &'e Environment, report: Report) -> Self {
        Self { has_own_variables: environment.has_own(), environment, report, asked: BTreeSet::new() }
    }

    pub(super) fn finish(self) -> Report {
        self.report
    }

    pub(super) fn push(&mut self, mistake: Mistake) {
        self.report.push(mistake);
    }

    /// Makes a text known, so that spots can lie in it.
    pub(super) fn source(&mut self, name: impl Into<String>, text: impl Into<String>) -> SourceId {
        self.report.source(name, text)
    }

    /// What stands at a spot, as it was written.
    pub(super) fn written(&self, spot: &Spot) -> &str {
        self.report.text(spot)
    }

    /// How many mistakes were found so far.
    pub(super) fn mistakes(&self) -> usize {
        self.report.mistakes()
    }

    /// The table `name` within `parent`; an absent one has no settings but those of the environment.
    pub(super) fn table<'d>(&mut self, parent: &Section<'d>, name: &str) -> Section<'d> {
        let present = parent.entry(name).and_then(|(key, value)| self.open(parent, key, value));
        present.unwrap_or_else(|| Section::absent(parent, name))
    }

    /// All tables within `parent`; entries that are no tables are reported and left out.
    pub(super) fn tables<'d>(&mut self, parent: &Section<'d>) -> Vec<Section<'d>> {
        parent.entries().filter_map(|(key, value)| self.open(parent, key, value)).collect()
    }

    fn open<'d>(
        &mut self,
        parent: &Section<'d>,
        key: &Spanned<DeString<'_>>,
        value: &'d Spanned<DeValue<'d>>,
    ) -> Option<Section<'d>> {
        let Some(entries) = value.get_ref().as_table() else {
            self.wrong_kind::<()>(&parent.key_path(key.get_ref()), parent.spot_of(value), value.get_ref(), "a table");
            return None;
        };
        Some(Section::child(parent, key, entries))
    }

    /// Reports the keys of `section` that are none of `known`.
    pub(super) fn check_keys(&mut self, section: &Section<'_>, known: &[&str]) {
        for (key, value) in section.entries() {
            let name: &str = key.get_ref();
            if known.contains(&name) {
                continue;
            }
            let help = match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if value.get_ref().is_table() && section.is_within("types") => {
                    format!("a name with a dot in it stands in quotes: [types.\"{}.{name}\"]", section.name())
                }
                None => format!("known here: {}", known.join(", ")),
            };
            let title = format!("`{}` is not a setting", section.key_path(name));
            self.push(Mistake::new(title, section.spot_of(key), "unknown").help(help));
        }
    }

    /// A setting whose value is a text.
    pub(super) fn text<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        parse: impl Fn(&str) -> Result<T, Wrong>,
    ) -> Option<Found<T>> {
        self.text_or_flag(section, key, None, parse)
    }

    /// A setting whose value is a text, with the text that stands for it where there is none.
    pub(super) fn text_or<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        default: &str,
        parse: impl Fn(&str) -> Result<T, Wrong>,
    ) -> Option<T> {
        let mistakes_before = self.mistakes();
        let found = self.text(section, key, &parse);
        let absent = found.is_none() && self.mistakes() == mistakes_before;
        found.map(|found| found.value).or_else(|| parse(default).ok().filter(|_| absent))
    }

    /// A setting whose value is a text that must be there.
    pub(super) fn required<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        help: &str,
        parse: impl Fn(&str) -> Result<T, Wrong>,
    ) -> Option<T> {
        let mistakes_before = self.mistakes();
        let found = self.text(section, key, parse);
        if found.is_none() && self.mistakes() == mistakes_before {
            self.missing(section, key, help);
        }
        found.map(|found| found.value)
    }

    /// Reports a setting that isn't there and must be, with what to do.
    pub(super) fn missing(&mut self, section: &Section<'_>, key: &str, help: &str) {
        let title = format!("`{}` is missing", section.key_path(key));
        let mistake = Mistake::new(title, section.spot().clone(), format!("has no `{key}`"));
        self.push(mistake.help(help.to_owned()));
    }

    /// A setting whose value is a text, which the flag `--key` sets too.
    pub(super) fn text_or_flag<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        flag: Option<&str>,
        parse: impl Fn(&str) -> Result<T, Wrong>,
    ) -> Option<Found<T>> {
        self.text_or_named_flag(section, key, (key, flag), parse)
    }

    /// A setting whose value is a text, with the name of the flag that sets it too.
    pub(super) fn text_or_named_flag<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        flag: (&str, Option<&str>),
        parse: impl Fn(&str) -> Result<T, Wrong>,
    ) -> Option<Found<T>> {
        let name = section.key_path(key);
        let in_document = section.get(key).and_then(|(spot, value)| self.string(&name, spot, value));
        let variable = self.variable(section, key);
        let flag = flag.1.map(|text| self.flag(flag.0, text));
        let candidates = [in_document, variable, flag].into_iter().flatten();
        let parsed: Vec<_> = candidates.map(|found| self.parse(&name, found, &parse)).collect();
        parsed.into_iter().next_back().flatten()
    }

    /// A text setting that only this variable sets.
    pub(super) fn text_of_variable<T>(
        &mut self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, Wrong>,
    ) -> Option<Found<T>> {
        let found = self.variable_named(name)?;
        self.parse(&name, found, parse)
    }

    /// A setting that is true or false.
    pub(super) fn boolean(&mut self, section: &Section<'_>, key: &str) -> Option<Found<bool>> {
        let name = section.key_path(key);
        let in_document = section.get(key).and_then(|(spot, value)| match value.as_bool() {
            Some(value) => Some(Found { value, spot }),
            None => self.wrong_kind(&name, spot, value, "true or false"),
        });
        let variable = self.variable(section, key);
        let parse = |text: &str| text.parse().map_err(|_| Wrong::new("is not true or false", "wanted true or false"));
        variable.map_or(in_document, |found| self.parse(&name, found, parse))
    }

    /// A setting that is a whole number, of which `parse` says whether it is in range.
    pub(super) fn integer<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        parse: impl Fn(i64) -> Result<T, Wrong>,
    ) -> Option<Found<T>> {
        let name = section.key_path(key);
        let not_whole = || Wrong::new("is not a whole number", "wanted a whole number");
        let in_document = section.get(key).and_then(|(spot, value)| match value.as_integer() {
            Some(number) => Some(Found { value: (number.as_str().to_owned(), number.radix()), spot }),
            None => self.wrong_kind(&name, spot, value, "a whole number"),
        });
        let variable = self.variable(section, key);
        let variable = variable.map(|found| Found { value: (found.value, 10), spot: found.spot });
        let parsed: Vec<_> = [in_document, variable]
            .into_iter()
            .flatten()
            .map(|Found { value: (digits, radix), spot }| {
                let parse = |digits: &str| parse(i64::from_str_radix(digits, radix).map_err(|_| not_whole())?);
                self.parse(&name, Found { value: digits, spot }, parse)
            })
            .collect();
        parsed.into_iter().next_back().flatten()
    }

    /// A setting that is a list of texts; in the environment they are joined by commas. The spot is the whole
    /// list's.
    pub(super) fn texts(&mut self, section: &Section<'_>, key: &str) -> Option<Found<Vec<Found<String>>>> {
        self.list(section, key, "a list of strings", Self::string, |text| text)
    }

    /// A list of texts that a flag, given once or often, or else a variable says, which no document does.
    pub(super) fn texts_of_flag_or_variable(
        &mut self,
        flag: &str,
        given: &[String],
        variable: &str,
    ) -> Option<Found<Vec<Found<String>>>> {
        if given.is_empty() {
            return self.variable_named(variable).map(|found| split(&found));
        }
        let value: Vec<Found<String>> = given.iter().map(|text| self.flag(flag, text)).collect();
        let spot = value.first()?.spot.clone();
        Some(Found { value, spot })
    }

    /// A setting that is a list, of which `element` reads one by its name, place and value; in the environment it is one
    /// of texts joined by commas. The spot is the whole list's.
    pub(super) fn list<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        wanted: &str,
        mut element: impl FnMut(&mut Self, &dyn Display, Spot, &DeValue<'_>) -> Option<Found<T>>,
        of_text: impl Fn(String) -> T,
    ) -> Option<Found<Vec<Found<T>>>> {
        let name = section.key_path(key);
        let in_document = section.get(key).and_then(|(spot, value)| {
            let Some(list) = value.as_array() else {
                return self.wrong_kind(&name, spot, value, wanted);
            };
            let elements = list.iter().enumerate().filter_map(|(index, part)| {
                element(self, &format_args!("{name}[{index}]"), section.spot_of(part), part.get_ref())
            });
            Some(Found { value: elements.collect(), spot })
        });
        let Some(found) = self.variable(section, key) else { return in_document };
        let Found { value, spot } = split(&found);
        let value = value.into_iter().map(|Found { value, spot }| Found { value: of_text(value), spot }).collect();
        Some(Found { value, spot })
    }

    /// The part of a text that stands at `whole`. Escapes make a string longer than what it stands for: then it is all of it.
    pub(super) fn within(&self, whole: &Spot, text: &str, part: Range<usize>) -> Spot {
        let start = self.written(whole).find(text);
        start.map_or_else(|| whole.clone(), |start| whole.part(start + part.start, part.len().max(1)))
    }

    fn parse<T>(
        &mut self,
        name: &dyn Display,
        found: Found<String>,
        parse: impl Fn(&str) -> Result<T, Wrong>,
    ) -> Option<Found<T>> {
        match parse(&found.value) {
            Ok(value) => Some(Found { value, spot: found.spot }),
            Err(wrong) => {
                let title = format!("`{name}` {}", wrong.what);
                self.push(Mistake::new(title, found.spot, wrong.label).help(wrong.help));
                None
            }
        }
    }

    /// A string of the document with its `${NAME}` replaced.
    pub(super) fn string(&mut self, name: &dyn Display, spot: Spot, value: &DeValue<'_>) -> Option<Found<String>> {
        let Some(text) = value.as_str() else {
            return self.wrong_kind(name, spot, value, "a string");
        };
        if !text.contains("${") {
            return Some(Found { value: text.to_owned(), spot });
        }
        let is_named = |name: &&str| text.contains(&format!("${{{}}}", name.strip_suffix(FILE).unwrap_or(name)));
        self.asked.extend(self.environment.own_names().filter(is_named).map(str::to_owned));
        match expand(text, self.environment) {
            Ok(value) => Some(Found { value, spot }),
            Err(references) => {
                for (range, why) in references {
                    self.unreplaced(name, &spot, &text[range], why);
                }
                None
            }
        }
    }

    fn unreplaced(&mut self, name: &dyn Display, spot: &Spot, reference: &str, why: Unreplaced) {
        // Escapes make a string longer than what it stands for, so its place within is looked for.
        let place = self.report.text(spot).find(reference).map(|offset| spot.part(offset, reference.len()));
        let label = match why {
            Unreplaced::Open => "no `}` follows".to_owned(),
            Unreplaced::Name => "no name of a variable".to_owned(),
            Unreplaced::Unset => "this variable is not set".to_owned(),
            Unreplaced::Unusable(Unusable::NotText) => "the value of this variable is not UTF-8".to_owned(),
            Unreplaced::Unusable(Unusable::SetTwice) => "this variable and the one with _FILE are both set".to_owned(),
            Unreplaced::Unusable(Unusable::Unreadable(why)) => {
                format!("the file of this variable can't be read: {why}")
            }
        };
        let title = format!("`{name}` can't be filled in from the environment");
        let mistake = Mistake::new(title, place.unwrap_or_else(|| spot.clone()), label);
        self.push(mistake.help("`${NAME}` stands for a variable, or for the content of the file that `NAME_FILE` names; write `$${` for a plain `${`".to_owned()));
    }

    /// Whether the file or the environment has a value for it.
    pub(super) fn is_set(&self, section: &Section<'_>, key: &str) -> bool {
        section.get(key).is_some() || (self.has_own_variables && self.environment.get(&section.variable(key)).is_some())
    }

    fn variable(&mut self, section: &Section<'_>, key: &str) -> Option<Found<String>> {
        if !self.has_own_variables {
            // With thousands of types, to make all the names that nobody has set takes a tenth of a second.
            return None;
        }
        self.variable_named(&section.variable(key))
    }

    fn variable_named(&mut self, name: &str) -> Option<Found<String>> {
        let value = self.environment.get(name);
        self.asked.insert(name.to_owned());
        match value? {
            Ok(value) => {
                let (name, shown) = match value.file {
                    // The content may be a secret.
                    Some(path) => (format!("{name}{FILE}"), path),
                    None => (name.to_owned(), &*value.text),
                };
                let text = format!("{name}={shown}");
                let span = name.len() + 1..text.len();
                let spot = Spot { source: self.report.source("environment", text), span };
                Some(Found { value: value.text.into_owned(), spot })
            }
            Err(unusable) => {
                let spot = self.whole_source("environment", name);
                let (title, label) = match unusable {
                    Unusable::NotText => (format!("`{name}` is not UTF-8"), "the value of this variable".to_owned()),
                    Unusable::SetTwice => {
                        (format!("`{name}` and `{name}{FILE}` are both set"), "unset one of them".to_owned())
                    }
                    Unusable::Unreadable(why) => (format!("the file that `{name}{FILE}` names can't be used"), why),
                };
                self.push(Mistake::new(title, spot, label));
                None
            }
        }
    }

    fn flag(&mut self, key: &str, text: &str) -> Found<String> {
        let line = format!("--{key} {text}");
        let span = key.len() + 3..line.len();
        Found { value: text.to_owned(), spot: Spot { source: self.report.source("command line", line), span } }
    }

    fn whole_source(&mut self, name: &str, text: &str) -> Spot {
        Spot { source: self.report.source(name, text), span: 0..text.len() }
    }

    /// Says that a value is of another kind.
    pub(super) fn wrong_kind<T>(
        &mut self,
        name: &dyn Display,
        spot: Spot,
        value: &DeValue<'_>,
        wanted: &str,
    ) -> Option<T> {
        let is = match value.type_str() {
            kind @ ("integer" | "array") => format!("an {kind}"),
            kind => format!("a {kind}"),
        };
        self.push(Mistake::new(format!("`{name}` must be {wanted}"), spot, format!("this is {is}")));
        None
    }

    /// Warns of variables that look like settings and set nothing: names with a slip, or of tables that the
    /// document doesn't have. Their values may be secrets and are not shown.
    pub(super) fn check_variables(&mut self) {
        let is_asked =
            |name: &str| self.asked.contains(name) || name.strip_suffix(FILE).is_some_and(|of| self.asked.contains(of));
        let is_unknown = |name: &&str| !is_asked(name) && !OF_FLAGS.contains(name);
        let unknown: Vec<&str> = self.environment.own_names().filter(is_unknown).collect();
        for name in unknown {
            let help = self.nearest_variable(name).map(|near| format!("did you mean `{near}`?"));
            let spot = self.whole_source("environment", name);
            self.push(Mistake::warning(format!("`{name}` sets nothing"), spot, "no such setting").help(help));
        }
    }

    /// The variable that was probably meant: one whose name is nearly this one, or ends nearly like it.
    fn nearest_variable(&self, name: &str) -> Option<&str> {
        let known = || self.asked.iter().map(String::as_str).chain(OF_FLAGS.iter().copied());
        let ends = || known().flat_map(|known| known.match_indices('_').map(move |(at, _)| (&known[at + 1..], known)));
        let near = nearest(name.strip_prefix(PREFIX)?, ends().map(|(end, _)| end))?;
        ends().find(|(end, _)| *end == near).map(|(_, known)| known)
    }
}

/// The parts of a variable's value between commas, without the blanks around them.
fn split(found: &Found<String>) -> Found<Vec<Found<String>>> {
    let mut offset = 0;
    let mut parts = Vec::new();
    for part in found.value.split(',') {
        let blank = part.len() - part.trim_start().len();
        let value = part.trim().to_owned();
        parts.push(Found { spot: found.spot.part(offset + blank, value.len()), value });
        offset += part.len() + 1;
    }
    Found { value: parts, spot: found.spot.clone() }
}
