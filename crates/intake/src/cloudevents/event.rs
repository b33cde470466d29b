//! The attributes of an event of either mode.

use std::borrow::Cow;
use std::collections::BTreeMap;

use json::text::write_string;

/// Attributes of an event. More are an error: each takes more memory than it has bytes.
const ATTRIBUTES_MAX: usize = 256;
/// The attributes that come first, in this order. The extensions follow in the order of their names, then the data.
const ORDER: [&str; 8] = ["specversion", "id", "source", "type", "datacontenttype", "dataschema", "subject", "time"];
/// How many of [`ORDER`] an event must have.
const REQUIRED: usize = 4;
/// The only version whose attributes are known. Patches of the specification don't change it.
const VERSION: &str = "1.0";
/// Separates the source from the id.
const SEPARATOR: char = '\u{1f}';

/// Why an event is rejected.
pub(super) type Invalid = Cow<'static, str>;

/// An event of either mode.
#[derive(Debug, Default)]
pub(super) struct Event<'a> {
    attributes: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
}

impl<'a> Event<'a> {
    /// Adds an attribute. Of several with one name the last counts.
    pub(super) fn add(&mut self, name: Cow<'a, str>, value: Cow<'a, str>) -> Result<(), Invalid> {
        if self.attributes.len() == ATTRIBUTES_MAX {
            return Err(format!("the event has more than {ATTRIBUTES_MAX} attributes: send fewer").into());
        }
        self.attributes.insert(name, value);
        Ok(())
    }

    /// The value of an attribute.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).map(AsRef::as_ref)
    }

    /// Replaces the media type of the data.
    pub(super) fn set_media_type(&mut self, value: &str) {
        self.attributes.insert(Cow::Borrowed("datacontenttype"), Cow::Owned(value.to_owned()));
    }

    /// Checks that the required attributes are present, and that the version is known.
    pub(super) fn check(&self) -> Result<(), Invalid> {
        let is_missing = |name: &&&str| self.get(name).is_none_or(str::is_empty);
        if let Some(missing) = ORDER[..REQUIRED].iter().find(is_missing) {
            return Err(format!("the attribute `{missing}` is missing or empty: a CloudEvent must have it").into());
        }
        // It would also make two identities equal.
        let has_control =
            |name: &&&str| self.get(name).is_some_and(|value| value.contains(|c: char| c.is_ascii_control()));
        if let Some(name) = ["source", "id"].iter().find(has_control) {
            return Err(format!("the attribute `{name}` has a control character: CloudEvents allow none").into());
        }
        match self.get("specversion") {
            Some(VERSION) => Ok(()),
            _ => Err(format!("the `specversion` of the event isn't {VERSION}: no other one is supported").into()),
        }
    }

    /// Its identity: the source and the id.
    pub(super) fn identity(&self) -> String {
        let of = |name| self.get(name).unwrap_or_default();
        format!("{}{SEPARATOR}{}", of("source"), of("id"))
    }

    /// Writes the attributes in their order, as members after the bracket of an object.
    pub(super) fn write(&self, text: &mut String) {
        let known = ORDER.iter().filter_map(|name| Some((*name, self.get(name)?)));
        let others = self.attributes.iter().map(|(name, value)| (name.as_ref(), value.as_ref()));
        for (index, (name, value)) in known.chain(others.filter(|(name, _)| !ORDER.contains(name))).enumerate() {
            if index > 0 {
                text.push(',');
            }
            write_string(name, text);
            text.push(':');
            write_string(value, text);
        }
    }
}
