//! What is kept of the actions of a request for its response: eight bytes for each, their ids, and a table of indexes.

use std::collections::HashMap;

use json::text::write_string;

use super::action::Verb;
use super::filter::Shown;
use super::index_name::type_of;

/// The actions of a request.
#[derive(Debug, Default)]
pub(super) struct Items {
    items: Vec<Item>,
    /// The ids as they are within strings of JSON, one after the other.
    ids: String,
    indexes: Vec<Index>,
    numbers: HashMap<Box<str>, u32>,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    /// The number of the index, and the verb and whether there is an id in the lowest bits.
    packed: u32,
    id_end: u32,
}

/// An index that actions name.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) name: Box<str>,
    /// The name within a string of JSON.
    shown: Box<str>,
    /// Its type, or why there is none.
    pub(super) type_name: Result<String, String>,
}

/// An action, as the response shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape<'a> {
    pub(super) verb: Verb,
    /// The name of the index within a string of JSON.
    pub(super) index: &'a str,
    /// The id within a string of JSON.
    pub(super) id: Option<&'a str>,
}

const VERB_BITS: u32 = 0b011;
const ID_BIT: u32 = 0b100;
const INDEX_SHIFT: u32 = 3;
/// Bytes of an index in the table, in addition to its names.
const INDEX_BYTES: usize = size_of::<Index>() + 2 * size_of::<(Box<str>, u32)>();

impl Items {
    /// Removes all actions. The indexes stay known.
    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.ids.clear();
    }

    /// How many actions there are.
    pub(super) const fn count(&self) -> usize {
        self.items.len()
    }

    /// The index of this name. An action names the index of the one before, as a rule.
    pub(super) fn index_number(&mut self, name: &str, before: u32) -> u32 {
        if self.index(before).is_some_and(|index| *index.name == *name) {
            return before;
        }
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.indexes.len()).unwrap_or(u32::MAX);
        let mut shown = String::new();
        push_escaped(name, &mut shown);
        self.indexes.push(Index { name: name.into(), shown: shown.into(), type_name: type_of(name) });
        self.numbers.insert(name.into(), number);
        number
    }

    /// The index of a number.
    pub(super) fn index(&self, number: u32) -> Option<&Index> {
        self.indexes.get(usize::try_from(number).ok()?)
    }

    /// Adds an action. An id is kept if the response shows it.
    pub(super) fn push(&mut self, verb: Verb, index: u32, id: Option<&str>, shown: &Shown) {
        let id = id.filter(|_| shown.item(verb).id);
        if let Some(id) = id {
            push_escaped(id, &mut self.ids);
        }
        let id_bit = if id.is_some() { ID_BIT } else { 0 };
        let packed = index << INDEX_SHIFT | verb.number() | id_bit;
        self.items.push(Item { packed, id_end: u32::try_from(self.ids.len()).unwrap_or(u32::MAX) });
    }

    /// The actions in their order.
    pub(super) fn all(&self) -> impl Iterator<Item = Shape<'_>> {
        let mut begin = 0;
        self.items.iter().map(move |item| {
            let end = usize::try_from(item.id_end).unwrap_or(usize::MAX);
            let id = self.ids.get(begin..end).filter(|_| item.packed & ID_BIT != 0);
            begin = end;
            let verb = Verb::numbered(item.packed & VERB_BITS);
            let index = self.index(item.packed >> INDEX_SHIFT).map_or("", |index| &index.shown);
            Shape { verb, index, id }
        })
    }

    /// How many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        let names =
            |index: &Index| 3 * index.name.len() + index.type_name.as_ref().map_or_else(String::len, String::len);
        let indexes: usize = self.indexes.iter().map(|index| INDEX_BYTES + names(index)).sum();
        self.items.capacity() * size_of::<Item>() + self.ids.capacity() + indexes
    }
}

/// Bytes of memory for each action, while the list of them grows.
pub(super) const ITEM_BYTES_GROWING: usize = 3 * size_of::<Item>();

/// Adds a text as it is within a string of JSON.
fn push_escaped(text: &str, out: &mut String) {
    if text.bytes().any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        let mut quoted = String::with_capacity(text.len() + 8);
        write_string(text, &mut quoted);
        out.push_str(&quoted[1..quoted.len() - 1]);
    } else {
        out.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_keep_actions() {
        let mut items = Items::default();
        for _ in 0..2 {
            items.clear();
            let (a, b) = (items.index_number("a", u32::MAX), items.index_number("b-2026.11.28", 0));
            assert_eq!((a, b), (0, 1));
            assert_eq!((items.index_number("a", 1), items.index_number("b-2026.11.28", 1)), (0, 1));
            let shown = Shown::of(None);
            items.push(Verb::Create, a, Some("x\"\n"), &shown);
            items.push(Verb::Delete, b, None, &shown);
            items.push(Verb::Index, b, Some(""), &shown);
            items.push(Verb::Update, a, Some("é"), &Shown::of(Some("errors")));
        }
        let shape = |verb, index, id| Shape { verb, index, id };
        let expected = [
            shape(Verb::Create, "a", Some("x\\\"\\n")),
            shape(Verb::Delete, "b-2026.11.28", None),
            shape(Verb::Index, "b-2026.11.28", Some("")),
            shape(Verb::Update, "a", None),
        ];
        assert_eq!(items.all().collect::<Vec<_>>(), expected);
        assert_eq!(items.index(1).unwrap().type_name.as_deref(), Ok("b"));
    }

    #[test]
    fn items_are_compact() {
        let mut items = Items::default();
        let index = items.index_number("logs-app", 0);
        for _ in 0..100_000 {
            items.push(Verb::Create, index, None, &Shown::of(None));
        }
        assert!(items.bytes() <= 100_000 * ITEM_BYTES_GROWING, "{}", items.bytes());
        assert!(items.bytes() >= 100_000 * 8);
    }
}
