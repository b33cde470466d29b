//! The names of the objects that a lane wrote last.

use crate::records::{RECORD_BYTES_MAX, push_text, take_text};

/// Objects of a lane that are kept.
pub(crate) const OBJECTS_MAX: u64 = 1024;

/// An object that a lane has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenObject {
    /// The first position that it accounts for.
    pub first: u64,
    /// The last one.
    pub last: u64,
    /// Its name.
    pub name: String,
    /// The types of its events; empty if they are unknown.
    pub types: Vec<String>,
}

impl WrittenObject {
    /// Whether it may hold an event.
    pub(crate) fn may_hold(&self, position: u64, type_name: &str) -> bool {
        let is_of_type = self.types.is_empty() || self.types.iter().any(|name| name == type_name);
        (self.first..=self.last).contains(&position) && is_of_type
    }

    /// `None` if its name is too long. Types that are too long together are left out.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&self.first.to_le_bytes());
        bytes.extend_from_slice(&self.last.to_le_bytes());
        push_text(&mut bytes, &self.name);
        let end = bytes.len();
        push_text(&mut bytes, &self.types.join("\n"));
        if bytes.len() > RECORD_BYTES_MAX {
            bytes.truncate(end);
            push_text(&mut bytes, "");
        }
        (bytes.len() <= RECORD_BYTES_MAX).then_some(bytes)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (first, bytes) = bytes.split_first_chunk()?;
        let (last, bytes) = bytes.split_first_chunk()?;
        let (name, bytes) = take_text(bytes)?;
        let (types, _) = take_text(bytes)?;
        Some(Self {
            first: u64::from_le_bytes(*first),
            last: u64::from_le_bytes(*last),
            name: name.into(),
            types: types.lines().map(str::to_owned).collect(),
        })
    }
}
