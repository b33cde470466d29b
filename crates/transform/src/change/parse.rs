//! Parses the content of a string into a value.

mod access_log;
mod json;
mod key_value;
mod url;
mod user_agent;

use std::collections::HashMap;

use super::{Changed, string};
use ::json::text;

/// Parses the content of a string in one of these formats.
#[derive(Clone, Debug)]
pub(crate) enum Parse {
    Json { single_quotes: bool },
    KeyValue { between: String, equals: String },
    Url,
    Query,
    UserAgent,
    AccessLog,
}

impl Parse {
    pub(super) fn apply(&self, json: &str, out: &mut String) -> Changed {
        let text = string(json)?;
        match self {
            Self::Json { single_quotes } => json::parse(&text, *single_quotes, out),
            Self::KeyValue { between, equals } => key_value::parse(&text, between, equals, out),
            Self::Url => url::parse(&text, out),
            Self::Query => {
                url::parse_query(&text, out);
                Ok(())
            }
            Self::UserAgent => {
                user_agent::parse(&text, out);
                Ok(())
            }
            Self::AccessLog => access_log::parse(&text, out),
        }
    }
}

/// Members in their order; of those of the same name, the values as an array.
#[derive(Default)]
struct Repeating {
    members: Vec<(String, Vec<String>)>,
    places: HashMap<String, usize>,
}

impl Repeating {
    /// Adds a value in JSON.
    fn push(&mut self, name: String, json: String) {
        if let Some(place) = self.places.get(&name) {
            self.members[*place].1.push(json);
            return;
        }
        self.places.insert(name.clone(), self.members.len());
        self.members.push((name, vec![json]));
    }

    fn write(&self, out: &mut String) {
        let mut members = Members::begin(out);
        for (name, values) in &self.members {
            match values.as_slice() {
                [value] => members.json(name, value),
                values => members.json(name, &format!("[{}]", values.join(","))),
            }
        }
        members.end();
    }
}

/// An object that is being written.
struct Members<'o> {
    out: &'o mut String,
    is_first: bool,
}

impl<'o> Members<'o> {
    fn begin(out: &'o mut String) -> Self {
        out.push('{');
        Self { out, is_first: true }
    }

    /// A member with a value in JSON.
    fn json(&mut self, name: &str, json: &str) {
        self.name(name);
        self.out.push_str(json);
    }

    fn string(&mut self, name: &str, value: &str) {
        self.name(name);
        text::write_string(value, self.out);
    }

    /// A member, unless it has no value.
    fn some(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.string(name, value);
        }
    }

    fn name(&mut self, name: &str) {
        if !self.is_first {
            self.out.push(',');
        }
        self.is_first = false;
        text::write_string(name, self.out);
        self.out.push(':');
    }

    fn end(self) {
        self.out.push('}');
    }
}
