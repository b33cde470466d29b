//! The parts of a configuration's text that may be secrets: found by the key of a value, for values of any type, and in
//! texts that are no TOML too. Only the values of known keys are shown.

use std::ops::Range;

use ::intake::kinds::KINDS as INTAKES;
use settings::{FILE, PREFIX, Setting};
use transform::is_step_key;

use super::tables::{self, Known};
use crate::declared::{Inner, ROOT, Table};
use crate::intakes;
use crate::old_names::{current, old_keys_of_sinks};
use crate::sinks::every_sink;
use crate::sinks::kinds::{self, KINDS};

/// Settings of the databases in `shards` that no sink has.
const OF_SHARDS: &[&str] = &["values"];
/// Settings that are shown although the table doesn't say of which kind it is: a file, a table, and URLs without their passwords.
const IN_ALL_SINKS: &[&str] = &["columns", "conflict", "path", "table", "url"];
/// Settings of a column, and of `conflict`.
const OF_COLUMNS: &[&str] = &["pointer", "type", "newest"];
/// Parts of usual names of secrets.
const SECRET_WORDS: &[&str] =
    &["api_key", "apikey", "authorization", "credential", "headers", "passw", "secret", "token"];
/// The beginning of a key in PEM, which may be set instead of the path of its file.
const PEM: &str = "-----BEGIN";
/// The setting of [`crate::bus`] that may have a password or a token.
const URL: &str = "url";
/// Its variable.
const VARIABLE_OF_URL: &str = "BUS_URL";
/// Nested brackets that are followed. No setting has as many.
const DEPTH_MAX: usize = 64;

/// The kind of a table, or of the value of a key.
#[derive(Clone, Copy, Debug)]
enum Place {
    Root,
    /// A table that isn't a sink's.
    Table(&'static Table),
    /// A table within the value of a setting.
    Settings(&'static [Setting]),
    /// A table of tables whose names the operator chooses.
    Named(&'static Table),
    /// `[sinks]` and `[sinks.X.shards]`: each key names a table that may hold secrets.
    Sinks,
    Sink,
    /// `[intakes]`.
    Intakes,
    Intake,
    /// Steps of a transform: `hash` has a key.
    Step,
    /// The value of a setting. Tables within it have no known keys.
    Value,
    /// A table of values whose names the operator chooses: they are no secrets.
    Names,
    /// The values of such a name: a column of a sink's table. A sink's `conflict` too.
    Column,
    /// A value of a step, which may be any JSON.
    Json,
}

/// The value that is read: its place, and whether it is hidden.
#[derive(Clone, Copy, Debug)]
struct Value {
    place: Place,
    is_hidden: bool,
    is_url: bool,
}

impl Value {
    const fn hidden() -> Self {
        Self { place: Place::Value, is_hidden: true, is_url: false }
    }
}

/// A table or a list that is open.
struct Level {
    is_table: bool,
    place: Place,
    is_hidden: bool,
    /// The value that it belongs to.
    outer: Option<Value>,
}

/// The parts of a text that may be secrets.
pub(crate) fn secrets(text: &str) -> Vec<Range<usize>> {
    if let Some(secret) = of_variable(text) {
        return secret;
    }
    // The name of a variable, whose value isn't shown.
    if text.starts_with(PREFIX)
        && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    {
        return Vec::new();
    }
    // A flag and its value.
    if !text.contains('\n') && text.starts_with("--") {
        return Vec::new();
    }
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut scanner =
        Scanner { text, at: start, found: Vec::new(), levels: Vec::new(), value: None, is_line_empty: true };
    scanner.open_table(Place::Root, false);
    scanner.run();
    scanner.found
}

/// The secret of a variable, if the text is one with its value.
fn of_variable(text: &str) -> Option<Vec<Range<usize>>> {
    let (name, value) = text.strip_prefix(PREFIX)?.split_once('=')?;
    if !name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_') {
        return None;
    }
    let ends_with = |key: &str| name.ends_with(&format!("_{}", key.to_ascii_uppercase()));
    let start = text.len() - value.len();
    let secret = if name == VARIABLE_OF_URL {
        of_url(value)
    } else if name.starts_with("INTAKES_") {
        (!shown_in_intakes().any(ends_with)).then_some(0..value.len())
    } else if !name.starts_with("SINKS_") {
        let is_path = name.strip_suffix(FILE).is_some_and(tables::is_variable);
        let is_shown = is_path || tables::is_variable(name) && !is_secret_name(name);
        (!is_shown || value.contains(PEM)).then_some(0..value.len())
    } else if KINDS.iter().flat_map(|kind| kind.urls).any(|key| ends_with(key)) {
        of_url(value)
    } else {
        (!shown_in_sinks().any(ends_with)).then_some(0..value.len())
    };
    Some(secret.map(|range| start + range.start..start + range.end).into_iter().collect())
}

/// The user and the password in a URL, or in a text that looks like one.
fn of_url(url: &str) -> Option<Range<usize>> {
    let scheme = url.find("://");
    let start = scheme.map_or(0, |at| at + "://".len());
    let rest = &url[start..];
    let colon = rest.find(':');
    if let Some(at) = rest.rfind('@') {
        // A user is shown. A token of NATS is in the same place, without a colon.
        let is_token = scheme.is_some_and(|end| ["nats", "tls"].contains(&&url[..end]));
        return match colon.filter(|colon| *colon < at && scheme.is_some()) {
            Some(colon) => Some(start + colon + 1..start + at),
            None if scheme.is_none() || is_token => Some(start..start + at),
            None => None,
        };
    }
    // A colon is followed by a port, or by a password whose host was forgotten.
    let behind = colon? + 1;
    let is_address = rest.contains('[') || rest[behind..].starts_with(|first: char| first.is_ascii_digit());
    (scheme.is_some() && !is_address).then_some(start + behind..url.len())
}

fn shown_in_sinks() -> impl Iterator<Item = &'static str> {
    let keys = kinds::keys().chain(OF_SHARDS.iter().copied()).chain(old_keys_of_sinks());
    keys.filter(|key| !KINDS.iter().any(|kind| kind.secrets.contains(key)))
}

fn shown_in_intakes() -> impl Iterator<Item = &'static str> {
    intakes::kinds::keys().filter(|key| !INTAKES.iter().any(|kind| kind.secrets.contains(key)))
}

fn is_secret_name(key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| lower.contains(word))
}

/// The kind of value of a key in a table that isn't a sink's.
fn in_table(known: Known, key: &str) -> Value {
    let value = |is_hidden, place| Value { place, is_hidden, is_url: false };
    match known {
        Known::Setting => Value { is_url: key == URL, ..value(is_secret_name(key), Place::Value) },
        Known::Table(Inner::Settings(table) | Inner::List(table)) => value(false, Place::Table(table)),
        Known::Table(Inner::Named(_, table)) => value(false, Place::Named(table)),
        Known::Settings(settings) => value(false, Place::Settings(settings)),
        Known::Names => value(false, Place::Names),
        Known::Steps => value(true, Place::Step),
        Known::Nothing => value(true, Place::Value),
    }
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    found: Vec<Range<usize>>,
    levels: Vec<Level>,
    value: Option<Value>,
    /// The line is empty so far.
    is_line_empty: bool,
}

impl Scanner<'_> {
    fn run(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                // Also of a file with the line ends of old Macs, which isn't TOML.
                b'\n' | b'\r' => self.end_line(),
                b' ' | b'\t' => self.at += 1,
                b'#' => self.comment(),
                b'[' if self.is_line_empty && self.header() => {}
                _ => {
                    self.is_line_empty = false;
                    if !self.key() {
                        self.token(byte);
                    }
                }
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn level(&self) -> Option<&Level> {
        self.levels.last()
    }

    fn is_top(&self) -> bool {
        self.levels.len() <= 1
    }

    /// Begins a table of the document.
    fn open_table(&mut self, place: Place, is_hidden: bool) {
        self.levels.clear();
        self.levels.push(Level { is_table: true, place, is_hidden, outer: None });
        self.value = None;
    }

    fn end_line(&mut self) {
        self.at += 1;
        if self.is_top() {
            // The value of the line before may be on this one.
            self.value = self.value.filter(|_| self.text[..self.at].trim_end().ends_with('='));
        }
        self.is_line_empty = true;
    }

    /// A comment may be a setting that is commented out.
    fn comment(&mut self) {
        let end = self.line_end();
        self.found.push(self.at + 1..end);
        self.at = end;
    }

    fn line_end(&self) -> usize {
        self.text[self.at..].find(['\n', '\r']).map_or(self.text.len(), |end| self.at + end)
    }

    /// Reads the header of a table, which also ends unclosed values before it. A header without a key in its brackets
    /// is a list.
    fn header(&mut self) -> bool {
        let line = &self.text[self.at..self.line_end()];
        let inner = line.trim_start_matches('[');
        let Some((path, _)) = inner.split_once(']') else { return false };
        let start = self.at + line.len() - inner.len();
        let (parts, end) = parts(self.text, start);
        let is_list = !self.is_top() && inner.starts_with(['"', '\'']);
        if is_list || parts.is_empty() || end != start + path.trim_end().len() {
            return false;
        }
        let mut value = Value { place: Place::Root, is_hidden: false, is_url: false };
        for part in &parts {
            value = self.step(value.place, value.is_hidden, part);
        }
        self.open_table(value.place, matches!(value.place, Place::Value) && value.is_hidden);
        // The rest of the line is a mistake, and may be a setting of the table.
        let closing = line.len() - inner.len() + path.len();
        self.at += closing + line[closing..].bytes().take_while(|byte| *byte == b']').count();
        self.is_line_empty = false;
        true
    }

    /// Takes a key and its `=`. In a table something else is a mistake, and may be a secret without them.
    fn key(&mut self) -> bool {
        let is_expected = self.value.is_none() && self.level().is_some_and(|level| level.is_table);
        let byte = self.peek().unwrap_or_default();
        let may_begin = is_of_key(byte) || b"\"'".contains(&byte);
        if !is_expected && !may_begin || is_expected && b"]},".contains(&byte) {
            return false;
        }
        let (parts, end) = parts(self.text, self.at);
        let blank = self.text[end..].len() - self.text[end..].trim_start_matches([' ', '\t']).len();
        if !parts.is_empty() && self.text[end + blank..].starts_with('=') {
            // Something before it was left open, or a comma is missing.
            let table = self.levels.iter().rfind(|level| level.is_table);
            let Some(&Level { place, is_hidden, .. }) = table else { return false };
            let mut value = Value { place, is_hidden, is_url: false };
            for part in &parts {
                value = self.step(value.place, value.is_hidden, part);
            }
            self.value = Some(value);
            self.at = end + blank + 1;
            return true;
        }
        if is_expected {
            self.value = Some(Value::hidden());
            // The word itself is shown if it is a key whose `=` is missing.
            let word = self.text[self.at..].bytes().take_while(|byte| is_of_key(*byte)).count();
            let is_key = !matches!(self.text.as_bytes().get(self.at + word), None | Some(b'\n' | b'\r' | b'#'));
            self.at += if is_key { word } else { 0 };
            return is_key && word > 0;
        }
        false
    }

    /// The kind of value of a key in a table.
    fn step(&self, place: Place, is_hidden: bool, key: &str) -> Value {
        let value = |is_hidden, place| Value { place, is_hidden, is_url: false };
        match place {
            Place::Root if key == "sinks" => value(true, Place::Sinks),
            Place::Root if key == intakes::TABLE => value(true, Place::Intakes),
            Place::Root => in_table(ROOT.find(key), key),
            Place::Table(table) => in_table(table.find(key), key),
            Place::Settings(settings) => in_table(tables::find(settings, key), key),
            // A table is expected: another value may be a setting whose table's name was forgotten.
            Place::Named(table) => value(true, Place::Table(table)),
            Place::Sinks => value(true, Place::Sink),
            Place::Sink if key == "shards" => value(true, Place::Sinks),
            Place::Sink => {
                let place = match key {
                    "columns" => Place::Names,
                    "conflict" => Place::Column,
                    _ => Place::Value,
                };
                Value {
                    is_url: KINDS.iter().any(|kind| kind.urls.contains(&key)),
                    ..value(!self.is_shown_in_sink(key), place)
                }
            }
            Place::Intakes => value(true, Place::Intake),
            Place::Intake => value(!self.is_shown_in_intake(key), Place::Value),
            Place::Step if key == "hash" => value(false, Place::Step),
            Place::Step if key == "key" || !is_step_key(key) => value(true, Place::Value),
            Place::Step => value(false, Place::Json),
            Place::Names => value(is_hidden || is_secret_name(key), Place::Column),
            Place::Column => value(is_hidden || !OF_COLUMNS.contains(&key), Place::Value),
            Place::Json => value(is_hidden || key == "key" || is_secret_name(key), Place::Json),
            Place::Value => value(true, Place::Value),
        }
    }

    /// Whether the value of a key is shown in the intake here: by the rule of sinks.
    fn is_shown_in_intake(&self, key: &str) -> bool {
        let mut named = INTAKES.iter().filter(|kind| self.names(kind.name));
        let of_kind = named.clone().any(|kind| settings::names(kind.settings).any(|known| known == key));
        let is_common = settings::names(intakes::SETTINGS).any(|known| known == key);
        (of_kind || is_common) && !named.any(|kind| kind.secrets.contains(&key))
    }

    /// Whether the table here has a string with this name of a kind.
    fn names(&self, name: &str) -> bool {
        let begin = self.text[..self.at].rfind("\n[").unwrap_or(0);
        let end = self.text[self.at..].find("\n[").map_or(self.text.len(), |end| self.at + end);
        ['"', '\''].iter().any(|quote| self.text[begin..end].contains(&format!("{quote}{name}{quote}")))
    }

    /// Whether the value of a key is shown in the sink here. One of the kinds that its table names must have the key, and it must be a secret
    /// of none of them. A key of another kind is in the wrong table.
    fn is_shown_in_sink(&self, key: &str) -> bool {
        let named: Vec<_> = KINDS.iter().filter(|kind| self.names(kind.name)).collect();
        let of_writer = self.names(kinds::WRITER) && kinds::writer_keys().contains(&key);
        let is_known = named.iter().any(|kind| kind.has_key(current(key))) || of_writer;
        let is_common = IN_ALL_SINKS.iter().chain(OF_SHARDS).any(|known| *known == key);
        let is_secret = named.iter().any(|kind| kind.secrets.contains(&key));
        (is_known || is_common || settings::names(every_sink::SETTINGS).any(|known| known == key)) && !is_secret
    }

    fn token(&mut self, byte: u8) {
        match byte {
            b'[' | b'{' if self.levels.len() < DEPTH_MAX => {
                let value = self.value.unwrap_or(Value::hidden());
                let is_table = byte == b'{';
                let is_hidden = value.is_hidden && (matches!(value.place, Place::Value) || !is_table);
                self.levels.push(Level { is_table, place: value.place, is_hidden, outer: self.value });
                self.value = self.value.filter(|_| !is_table);
                self.at += 1;
            }
            b']' | b'}' => {
                if !self.is_top() {
                    self.value = self.levels.pop().and_then(|level| level.outer);
                }
                self.at += 1;
            }
            b',' => {
                if !self.is_top() && self.level().is_some_and(|level| level.is_table) {
                    self.value = None;
                }
                self.at += 1;
            }
            b'"' | b'\'' => self.string(),
            _ => {
                let rest = &self.text[self.at..];
                let length = rest.find(|c: char| c.is_whitespace() || ",[]{}#\"'".contains(c)).unwrap_or(rest.len());
                // A bracket beyond the depth is a separate word.
                let length = length.max(rest.chars().next().map_or(1, char::len_utf8));
                if self.value.is_none_or(|value| value.is_hidden) {
                    self.found.push(self.at..self.at + length);
                }
                self.at += length;
            }
        }
    }

    fn string(&mut self) {
        let (content, end, is_long) = string(self.text, self.at);
        let value = self.value.unwrap_or(Value::hidden());
        let text = &self.text[content.clone()];
        if value.is_hidden || is_long || text.contains(PEM) {
            self.found.push(content);
        } else if value.is_url
            && let Some(secret) = of_url(text)
        {
            self.found.push(content.start + secret.start..content.start + secret.end);
        }
        self.at = end;
    }
}

const fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// The parts of a key at a place, and its end.
fn parts(text: &str, start: usize) -> (Vec<&str>, usize) {
    let (mut parts, mut end) = (Vec::new(), start);
    loop {
        let rest = &text[end..];
        let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let at = end + blank;
        let after = match text.as_bytes().get(at) {
            Some(b'"' | b'\'') => {
                let (content, after, _) = string(text, at);
                parts.push(&text[content]);
                after
            }
            _ => {
                let word = text[at..].bytes().take_while(|byte| is_of_key(*byte)).count();
                if word == 0 {
                    return (parts, end);
                }
                parts.push(&text[at..at + word]);
                at + word
            }
        };
        end = after;
        let rest = &text[end..];
        let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        if text.as_bytes().get(end + blank) != Some(&b'.') {
            return (parts, end);
        }
        end += blank + 1;
    }
}

/// The content of the string at a place, its end, and whether it has three quotes. One without an end ends with its line.
fn string(text: &str, start: usize) -> (Range<usize>, usize, bool) {
    let quote = &text[start..=start];
    let long = quote.repeat(3);
    let rest = &text[start..];
    if rest.starts_with(&long)
        && let Some(length) = rest[long.len()..].find(&long)
    {
        let content = start + long.len()..start + long.len() + length;
        // Up to two quotes may precede the last three.
        let more = text[content.end + long.len()..].chars().take(2).take_while(|c| quote.starts_with(*c)).count();
        return (content.start..content.end + more, content.end + more + long.len(), true);
    }
    let start = start + 1;
    let line = text[start..].find('\n').map_or(text.len(), |end| start + end);
    let mut at = start;
    while at < line {
        match text.as_bytes()[at] {
            b'\\' if quote == "\"" => at += 1,
            byte if byte == quote.as_bytes()[0] => return (start..at, at + 1, false),
            _ => {}
        }
        at += 1;
    }
    (start..line, line, false)
}
