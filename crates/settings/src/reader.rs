//! Reads settings from their three sources and collects errors. The caller passes a function that parses the text of a
//! value.

mod declared;
mod variables;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::Range;

use did_you_mean::nearest;
use toml::Spanned;
use toml::de::{DeString, DeValue};

use crate::diagnostics::{Diagnostic, Diagnostics, SourceId, SourceSpan};
use crate::environment::{Environment, FILE, InvalidVariable, Unreplaced, expand};
use crate::invalid_value::{InvalidValue, word};
use crate::old_name::UNTIL;
use crate::section::{Located, Section};

use variables::split;

/// Reads settings and collects errors.
///
/// A later source wins: the document, then the environment, then flags. An error in an earlier one is still reported.
#[derive(Debug)]
pub struct SettingsReader<'e> {
    environment: &'e Environment,
    /// Whether the environment has a variable that could be a setting.
    has_own_variables: bool,
    report: Diagnostics,
    /// The table whose tables may have dots in their names.
    dotted: &'static str,
    /// The variables of all settings that were read, set or not, and those that texts name.
    asked: BTreeSet<String>,
    /// The old names of such variables: they are known, and never suggested.
    asked_old: BTreeSet<String>,
}

impl<'e> SettingsReader<'e> {
    /// A reader that adds its errors to `diagnostics`.
    #[must_use]
    pub fn new(environment: &'e Environment, diagnostics: Diagnostics) -> Self {
        let has_own_variables = environment.has_own();
        let (asked, asked_old) = (BTreeSet::new(), BTreeSet::new());
        Self { has_own_variables, environment, report: diagnostics, dotted: "", asked, asked_old }
    }

    /// Adds a hint to unknown tables within tables of `table`: their names may need quotes.
    #[must_use]
    pub fn with_dotted_names(self, table: &'static str) -> Self {
        Self { dotted: table, ..self }
    }

    /// All errors and warnings.
    #[must_use]
    pub fn finish(self) -> Diagnostics {
        self.report
    }

    /// Adds an error or a warning.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.report.push(diagnostic);
    }

    /// Adds a text that spans refer to.
    pub fn source(&mut self, name: impl Into<String>, text: impl Into<String>) -> SourceId {
        self.report.source(name, text)
    }

    /// The text at a span.
    #[must_use]
    pub fn written(&self, span: &SourceSpan) -> &str {
        self.report.text(span)
    }

    /// How many errors there are so far.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.report.errors()
    }

    /// The table `name` within `parent`. One that the document lacks has the settings of the environment.
    pub fn table<'d>(&mut self, parent: &Section<'d>, name: &str) -> Section<'d> {
        let present = parent.entry(name).and_then(|(key, value)| self.open(parent, key, value));
        present.unwrap_or_else(|| Section::absent(parent, name))
    }

    /// All tables within `parent`. Reports entries that are no tables, and skips them.
    pub fn tables<'d>(&mut self, parent: &Section<'d>) -> Vec<Section<'d>> {
        parent.entries().filter_map(|(key, value)| self.open(parent, key, value)).collect()
    }

    /// The tables of the list `name` within `parent`. Reports a value that is no list, and elements that are no tables.
    pub fn list_of_tables<'d>(&mut self, parent: &Section<'d>, name: &str) -> Vec<Section<'d>> {
        let Some((span, value)) = parent.get(name) else { return Vec::new() };
        let path = parent.key_path(name);
        let Some(list) = value.as_array() else {
            let wanted = format!("a list of tables, each below [[{path}]]");
            self.wrong_kind::<()>(&path, span, value, &wanted);
            return Vec::new();
        };
        let mut sections = Vec::new();
        for (index, element) in list.iter().enumerate() {
            let span = parent.span_of(element);
            match element.get_ref().as_table() {
                Some(entries) => sections.push(Section::element(parent, (name, index), span, entries)),
                None => {
                    self.wrong_kind::<()>(&format_args!("{path}[{index}]"), span, element.get_ref(), "a table");
                }
            }
        }
        sections
    }

    fn open<'d>(
        &mut self,
        parent: &Section<'d>,
        key: &Spanned<DeString<'_>>,
        value: &'d Spanned<DeValue<'d>>,
    ) -> Option<Section<'d>> {
        let Some(entries) = value.get_ref().as_table() else {
            self.wrong_kind::<()>(&parent.key_path(key.get_ref()), parent.span_of(value), value.get_ref(), "a table");
            return None;
        };
        Some(Section::child(parent, key, entries))
    }

    /// Reports the keys of `section` that are none of `known`, and warns of old names.
    pub fn check_keys<'k>(&mut self, section: &Section<'_>, known: impl IntoIterator<Item = &'k str>) {
        let known: Vec<&str> = known.into_iter().collect();
        for (key, value) in section.entries() {
            let name: &str = key.get_ref();
            if known.contains(&name) {
                continue;
            }
            if let Some(new) = section.new_key(name).filter(|new| known.contains(new)) {
                self.report_old_key(section, (name, section.span_of(key)), new);
                continue;
            }
            let help = match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if value.get_ref().is_table() && section.is_within(self.dotted) => {
                    format!("put a name with a dot in quotes: [{}.\"{}.{name}\"]", self.dotted, section.name())
                }
                None => format!("known here: {}", known.join(", ")),
            };
            let title = format!("unknown setting `{}`", section.key_path(name));
            self.push(Diagnostic::new(title, section.span_of(key), "unknown").help(help));
        }
    }

    fn report_old_key(&mut self, section: &Section<'_>, (old, span): (&str, SourceSpan), new: &str) {
        let diagnostic = match section.exact_entry(new) {
            None => {
                let title = format!("`{}` has a new name", section.key_path(old));
                Diagnostic::warning(title, span, format!("write `{new}`")).help(UNTIL.to_owned())
            }
            Some((key, _)) => {
                let title = format!("conflict: `{}` and its old name `{old}` are both set", section.key_path(new));
                let diagnostic =
                    Diagnostic::new(title, span, "the old name").also(section.span_of(key), "the new name");
                diagnostic.help(format!("remove `{old}`"))
            }
        };
        self.push(diagnostic);
    }

    /// Replaces the old name of a value by the new one, with a warning.
    fn renew_value(&mut self, section: &Section<'_>, key: &str, mut found: Located<String>) -> Located<String> {
        let mut old_values = section.renamed(key).into_iter().flat_map(|renamed| renamed.old_values);
        if let Some((old, new)) = old_values.find(|(old, _)| *old == found.value) {
            let title = format!("the value {old:?} of `{}` has a new name", section.key_path(key));
            let warning = Diagnostic::warning(title, found.span.clone(), format!("write {new:?}"));
            self.push(warning.help(UNTIL.to_owned()));
            found.value = (*new).to_owned();
        }
        found
    }

    /// A setting whose value is a text.
    pub fn text<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        parse: impl Fn(&str) -> Result<T, InvalidValue>,
    ) -> Option<Located<T>> {
        self.text_or_flag(section, key, None, parse)
    }

    /// A setting whose value is a text, with its default.
    pub fn text_or<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        default: &str,
        parse: impl Fn(&str) -> Result<T, InvalidValue>,
    ) -> Option<T> {
        let errors_before = self.errors();
        let found = self.text(section, key, &parse);
        let absent = found.is_none() && self.errors() == errors_before;
        found.map(|found| found.value).or_else(|| parse(default).ok().filter(|_| absent))
    }

    /// A setting whose value is a text, and which must be set; `help` says how.
    pub fn required<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        help: &str,
        parse: impl Fn(&str) -> Result<T, InvalidValue>,
    ) -> Option<T> {
        let errors_before = self.errors();
        let found = self.text(section, key, parse);
        if found.is_none() && self.errors() == errors_before {
            self.missing(section, key, help);
        }
        found.map(|found| found.value)
    }

    /// Reports a missing setting; `help` has the remedy.
    pub fn missing(&mut self, section: &Section<'_>, key: &str, help: &str) {
        let title = format!("missing setting `{}`", section.key_path(key));
        let mistake = Diagnostic::new(title, section.span().clone(), format!("has no `{key}`"));
        self.push(mistake.help(help.to_owned()));
    }

    /// A setting whose value is a text, which the flag `--key` sets too.
    pub fn text_or_flag<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        flag: Option<&str>,
        parse: impl Fn(&str) -> Result<T, InvalidValue>,
    ) -> Option<Located<T>> {
        self.text_or_named_flag(section, key, (key, flag), parse)
    }

    /// A setting whose value is a text, with the name of the flag that sets it too.
    pub fn text_or_named_flag<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        flag: (&str, Option<&str>),
        parse: impl Fn(&str) -> Result<T, InvalidValue>,
    ) -> Option<Located<T>> {
        let name = section.key_path(key);
        let in_document = section.get(key).and_then(|(span, value)| self.string(&name, span, value));
        let variable = self.variable(section, key);
        let flag = flag.1.map(|text| self.flag(flag.0, text));
        let candidates = [in_document, variable, flag].into_iter().flatten();
        let parsed = candidates.map(|found| {
            let found = self.renew_value(section, key, found);
            self.parse(&name, found, &parse)
        });
        let parsed: Vec<_> = parsed.collect();
        parsed.into_iter().next_back().flatten()
    }

    /// A text setting that only this variable sets.
    pub fn text_of_variable<T>(
        &mut self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, InvalidValue>,
    ) -> Option<Located<T>> {
        let found = self.variable_named(name)?;
        self.parse(&name, found, parse)
    }

    /// A setting that is true or false.
    pub fn boolean(&mut self, section: &Section<'_>, key: &str) -> Option<Located<bool>> {
        let name = section.key_path(key);
        let in_document = section.get(key).and_then(|(span, value)| match value.as_bool() {
            Some(value) => Some(Located { value, span }),
            None => self.wrong_kind(&name, span, value, "true or false"),
        });
        let variable = self.variable(section, key);
        let parse =
            |text: &str| text.parse().map_err(|_| InvalidValue::new("is not true or false", "expected true or false"));
        variable.map_or(in_document, |found| self.parse(&name, found, parse))
    }

    /// A setting that is a whole number; `parse` checks its range.
    pub fn integer<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        parse: impl Fn(i64) -> Result<T, InvalidValue>,
    ) -> Option<Located<T>> {
        let name = section.key_path(key);
        let not_whole = || InvalidValue::new("is not a whole number", "expected a whole number");
        let in_document = section.get(key).and_then(|(span, value)| match value.as_integer() {
            Some(number) => Some(Located { value: (number.as_str().to_owned(), number.radix()), span }),
            None => self.wrong_kind(&name, span, value, "a whole number"),
        });
        let variable = self.variable(section, key);
        let variable = variable.map(|found| Located { value: (found.value, 10), span: found.span });
        let parsed: Vec<_> = [in_document, variable]
            .into_iter()
            .flatten()
            .map(|Located { value: (digits, radix), span }| {
                let parse = |digits: &str| parse(i64::from_str_radix(digits, radix).map_err(|_| not_whole())?);
                self.parse(&name, Located { value: digits, span }, parse)
            })
            .collect();
        parsed.into_iter().next_back().flatten()
    }

    /// A setting that is a list of texts. In the environment they are separated by commas. The span is the whole list's.
    pub fn texts(&mut self, section: &Section<'_>, key: &str) -> Option<Located<Vec<Located<String>>>> {
        self.list(section, key, "a list of strings", Self::string, |text| text)
    }

    /// A list of texts of a repeated flag, or else of a variable. The document has no such setting.
    pub fn texts_of_flag_or_variable(
        &mut self,
        flag: &str,
        given: &[String],
        variable: &str,
    ) -> Option<Located<Vec<Located<String>>>> {
        if given.is_empty() {
            return self.variable_named(variable).map(|found| split(&found));
        }
        let value: Vec<Located<String>> = given.iter().map(|text| self.flag(flag, text)).collect();
        let span = value.first()?.span.clone();
        Some(Located { value, span })
    }

    /// A setting that is a list. `element` reads one by its name, span and value. In the environment it is a list of texts, separated
    /// by commas. The span is the whole list's.
    pub fn list<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        wanted: &str,
        mut element: impl FnMut(&mut Self, &dyn Display, SourceSpan, &DeValue<'_>) -> Option<Located<T>>,
        of_text: impl Fn(String) -> T,
    ) -> Option<Located<Vec<Located<T>>>> {
        let name = section.key_path(key);
        let in_document = section.get(key).and_then(|(span, value)| {
            let Some(list) = value.as_array() else {
                return self.wrong_kind(&name, span, value, wanted);
            };
            let elements = list.iter().enumerate().filter_map(|(index, part)| {
                element(self, &format_args!("{name}[{index}]"), section.span_of(part), part.get_ref())
            });
            Some(Located { value: elements.collect(), span })
        });
        let Some(found) = self.variable(section, key) else { return in_document };
        let Located { value, span } = split(&found);
        let value = value.into_iter().map(|Located { value, span }| Located { value: of_text(value), span }).collect();
        Some(Located { value, span })
    }

    /// The span of a part of the text at `whole`. If the text has escapes, offsets don't match, and it is the whole span.
    #[must_use]
    pub fn within(&self, whole: &SourceSpan, text: &str, part: Range<usize>) -> SourceSpan {
        let start = self.written(whole).find(text);
        start.map_or_else(|| whole.clone(), |start| whole.part(start + part.start, part.len().max(1)))
    }

    /// Reads a text that is one of these words, and returns its meaning.
    pub fn word<T: Copy>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        what: &str,
        words: &[(&str, T)],
    ) -> Option<Located<T>> {
        self.text(section, key, |text| word(text, what, words))
    }

    /// Reads a list of texts. Each wrong element is reported by its index.
    pub fn parsed_texts<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        parse: impl Fn(&str) -> Result<T, InvalidValue>,
    ) -> Vec<Located<T>> {
        let texts = self.texts(section, key).map(|found| found.value).unwrap_or_default();
        let path = section.key_path(key);
        let parsed = texts.into_iter().enumerate();
        parsed.filter_map(|(index, text)| self.parse(&format_args!("{path}[{index}]"), text, &parse)).collect()
    }

    fn parse<T>(
        &mut self,
        name: &dyn Display,
        found: Located<String>,
        parse: impl Fn(&str) -> Result<T, InvalidValue>,
    ) -> Option<Located<T>> {
        match parse(&found.value) {
            Ok(value) => Some(Located { value, span: found.span }),
            Err(wrong) => {
                let title = format!("invalid value for `{name}`");
                self.push(Diagnostic::new(title, found.span, wrong.label).help(wrong.help));
                None
            }
        }
    }

    /// A string of the document with its `${NAME}` replaced.
    pub fn string(&mut self, name: &dyn Display, span: SourceSpan, value: &DeValue<'_>) -> Option<Located<String>> {
        let Some(text) = value.as_str() else {
            return self.wrong_kind(name, span, value, "a string");
        };
        if !text.contains("${") {
            return Some(Located { value: text.to_owned(), span });
        }
        let is_named = |name: &&str| text.contains(&format!("${{{}}}", name.strip_suffix(FILE).unwrap_or(name)));
        self.asked.extend(self.environment.own_names().filter(is_named).map(str::to_owned));
        match expand(text, self.environment) {
            Ok(value) => Some(Located { value, span }),
            Err(references) => {
                for (range, why) in references {
                    self.unreplaced(name, &span, &text[range], why);
                }
                None
            }
        }
    }

    fn unreplaced(&mut self, name: &dyn Display, span: &SourceSpan, reference: &str, why: Unreplaced) {
        // A string with escapes is longer than its value, so the reference is searched for.
        let place = self.report.text(span).find(reference).map(|offset| span.part(offset, reference.len()));
        let label = match why {
            Unreplaced::Open => "no `}` follows".to_owned(),
            Unreplaced::Name => "not the name of a variable".to_owned(),
            Unreplaced::Unset => "this variable is not set".to_owned(),
            Unreplaced::Unusable(InvalidVariable::NotText) => "the value of this variable is not UTF-8".to_owned(),
            Unreplaced::Unusable(InvalidVariable::Padded) => {
                "the value of this variable begins or ends with white space or a control character: remove it there, or write it \
                 next to `${…}`"
                    .to_owned()
            }
            Unreplaced::Unusable(InvalidVariable::SetTwice) => "this variable and the one with _FILE are both set".to_owned(),
            Unreplaced::Unusable(InvalidVariable::Unreadable(why)) => {
                format!("the file of this variable can't be read: {why}")
            }
        };
        let title = format!("invalid value for `{name}`");
        let mistake = Diagnostic::new(title, place.unwrap_or_else(|| span.clone()), label);
        self.push(mistake.help("`${NAME}` is replaced by the variable, or by the content of the file that `NAME_FILE` names; write `$${` for a plain `${`".to_owned()));
    }

    fn flag(&mut self, key: &str, text: &str) -> Located<String> {
        let line = format!("--{key} {text}");
        let range = key.len() + 3..line.len();
        Located { value: text.to_owned(), span: SourceSpan { source: self.report.source("command line", line), range } }
    }

    fn whole_source(&mut self, name: &str, text: &str) -> SourceSpan {
        SourceSpan { source: self.report.source(name, text), range: 0..text.len() }
    }

    /// Reports a value of another kind than `wanted`.
    pub fn wrong_kind<T>(
        &mut self,
        name: &dyn Display,
        span: SourceSpan,
        value: &DeValue<'_>,
        wanted: &str,
    ) -> Option<T> {
        let is = match value.type_str() {
            kind @ ("integer" | "array") => format!("an {kind}"),
            kind => format!("a {kind}"),
        };
        self.push(Diagnostic::new(
            format!("invalid value for `{name}`: expected {wanted}"),
            span,
            format!("this is {is}"),
        ));
        None
    }
}
