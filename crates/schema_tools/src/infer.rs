//! Infers a schema from samples: what all of them have in common. It accepts every sample; the user decides what else it should accept.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use limits::{SCHEMA_INFER_MEMBERS_MAX, SCHEMA_INFER_SHAPES_MAX};
use serde_json::{Map, Value, json};

use json::{ValueIndex, ValueKind, ValueView};
use schema::StringFormat;
use schema::{NumberLiteral, is_plain_number};

/// Formats that are recognised.
const FORMATS: [StringFormat; 4] = [StringFormat::DateTime, StringFormat::Ipv4, StringFormat::Ipv6, StringFormat::Uuid];
/// The maximum of strings in an `enum`, the length of the longest, and how often each must occur on average: fewer samples don't show
/// which other values are possible.
const ENUM_VALUES_MAX: usize = 12;
const ENUM_BYTES_MAX: usize = 64;
const ENUM_REPEATS_MIN: u64 = 10;

/// What the samples have in common so far. Its memory depends on their differences, not on their number.
#[derive(Debug, Default)]
pub struct Samples {
    root: Shape,
    shapes: usize,
}

#[derive(Debug, Default)]
struct Shape {
    count: u64,
    nulls: u64,
    booleans: u64,
    integers: u64,
    numbers: u64,
    range: Option<(NumberLiteral, NumberLiteral)>,
    texts: Option<Texts>,
    elements: Option<Box<Shape>>,
    arrays: u64,
    objects: Option<Objects>,
}

#[derive(Debug)]
struct Texts {
    count: u64,
    formats: Vec<StringFormat>,
    /// Empty if there were too many.
    values: BTreeSet<String>,
    has_many: bool,
}

#[derive(Debug, Default)]
struct Objects {
    count: u64,
    members: BTreeMap<String, (u64, Shape)>,
    has_many: bool,
}

impl Samples {
    /// Adds a sample, which must have passed [`json::check`].
    pub fn add(&mut self, sample: &str) {
        self.root.add(ValueIndex::default().read(sample), 0, &mut self.shapes);
    }

    /// The number of samples.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.root.count
    }

    /// The schema, as JSON of several lines. With `ranges`, numbers are limited to the range of the samples.
    #[must_use]
    pub fn schema(&self, ranges: bool) -> String {
        let mut schema = self.root.schema(ranges);
        schema.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
        let text =
            serde_json::to_string_pretty(&Value::Object(schema)).expect("texts and numbers can be written as JSON");
        text + "\n"
    }
}

impl Shape {
    fn add(&mut self, view: ValueView<'_>, at: usize, shapes: &mut usize) {
        self.count += 1;
        match view.kind(at) {
            ValueKind::Null => self.nulls += 1,
            ValueKind::Boolean => self.booleans += 1,
            ValueKind::Number => self.add_number(view.raw(at)),
            ValueKind::Text => self.texts.get_or_insert_with(Texts::new).add(&view.text(at)),
            ValueKind::Array => {
                self.arrays += 1;
                for child in view.children(at) {
                    self.elements.get_or_insert_default().add(view, child, shapes);
                }
            }
            ValueKind::Object => self.objects.get_or_insert_default().add(view, at, shapes),
        }
    }

    fn add_number(&mut self, text: &str) {
        if is_plain_number(text) {
            self.integers += 1;
        } else {
            self.numbers += 1;
        }
        match &mut self.range {
            None => self.range = Some((NumberLiteral::new(text), NumberLiteral::new(text))),
            Some((least, most)) => {
                if least.order_of(text) == Ordering::Less {
                    *least = NumberLiteral::new(text);
                }
                if most.order_of(text) == Ordering::Greater {
                    *most = NumberLiteral::new(text);
                }
            }
        }
    }

    fn schema(&self, ranges: bool) -> Map<String, Value> {
        let mut schema = Map::new();
        let kinds = self.kinds();
        match kinds.as_slice() {
            [] => return schema,
            [kind] => schema.insert("type".into(), (*kind).into()),
            several => schema.insert("type".into(), several.into()),
        };
        if let Some((least, most)) = self.range.as_ref().filter(|_| ranges) {
            schema.extend(exactly(&least.text).map(|value| ("minimum".to_owned(), value)));
            schema.extend(exactly(&most.text).map(|value| ("maximum".to_owned(), value)));
        }
        if let Some(texts) = &self.texts {
            texts.describe(kinds.len() == 1, &mut schema);
        }
        if let Some(elements) = &self.elements {
            schema.insert("items".into(), elements.schema(ranges).into());
        }
        if let Some(objects) = &self.objects {
            objects.describe(ranges, &mut schema);
        }
        schema
    }

    fn kinds(&self) -> Vec<&'static str> {
        let kinds = [
            ("null", self.nulls > 0),
            ("boolean", self.booleans > 0),
            ("integer", self.integers > 0 && self.numbers == 0),
            ("number", self.numbers > 0),
            ("string", self.texts.is_some()),
            ("array", self.arrays > 0),
            ("object", self.objects.is_some()),
        ];
        kinds.into_iter().filter(|(_, is_there)| *is_there).map(|(kind, _)| kind).collect()
    }
}

/// A number, if it can be written unchanged.
fn exactly(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    let written = value.to_string();
    (written == text).then_some(value)
}

impl Texts {
    fn new() -> Self {
        Self { count: 0, formats: FORMATS.to_vec(), values: BTreeSet::new(), has_many: false }
    }

    fn add(&mut self, text: &str) {
        self.count += 1;
        self.formats.retain(|format| format.is_that_of(text));
        if self.has_many || self.values.contains(text) {
            return;
        }
        if text.len() > ENUM_BYTES_MAX || self.values.len() >= ENUM_VALUES_MAX {
            self.has_many = true;
            self.values.clear();
        } else {
            self.values.insert(text.to_owned());
        }
    }

    fn describe(&self, alone: bool, schema: &mut Map<String, Value>) {
        let distinct = self.values.len() as u64;
        if let Some(format) = self.formats.first() {
            schema.insert("format".into(), format.name().into());
        } else if alone && !self.has_many && distinct * ENUM_REPEATS_MIN <= self.count {
            schema.insert("enum".into(), json!(self.values));
        }
    }
}

impl Objects {
    fn add(&mut self, view: ValueView<'_>, at: usize, shapes: &mut usize) {
        self.count += 1;
        let mut met = BTreeSet::new();
        for (name, value) in view.members(at) {
            let name = view.text(name);
            if self.has_many {
                return;
            }
            if !self.members.contains_key(&*name) {
                *shapes += 1;
                if self.members.len() >= SCHEMA_INFER_MEMBERS_MAX || *shapes > SCHEMA_INFER_SHAPES_MAX {
                    self.has_many = true;
                    self.members.clear();
                    return;
                }
            }
            let (count, shape) = self.members.entry(name.clone().into_owned()).or_default();
            shape.add(view, value, shapes);
            // A name may occur twice in one object.
            *count += u64::from(met.insert(name));
        }
    }

    fn describe(&self, ranges: bool, schema: &mut Map<String, Value>) {
        let properties: Map<String, Value> =
            self.members.iter().map(|(name, (_, shape))| (name.clone(), shape.schema(ranges).into())).collect();
        let always = self.members.iter().filter(|(_, (count, _))| *count == self.count);
        let required: Vec<&String> = always.map(|(name, _)| name).collect();
        if !properties.is_empty() {
            schema.insert("properties".into(), properties.into());
        }
        if !required.is_empty() {
            schema.insert("required".into(), json!(required));
        }
    }
}
