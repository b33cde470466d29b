//! The members that an object's rules name, and their lookup by name: once for each member of each event.

use std::cmp::Ordering;

use super::ids::SubschemaId;

/// A member that rules name.
#[derive(Debug)]
pub struct Property {
    key: Key,
    /// Its name.
    pub name: Box<str>,
    /// Its schema in `properties`.
    pub rules: Option<SubschemaId>,
    /// Whether `required` lists it.
    pub is_required: bool,
}

/// A key that distinguishes most names: their length and their first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    length: usize,
    first: u64,
}

const KEY_BYTES: usize = 8;

impl Key {
    fn of(name: &str) -> Self {
        let bytes = name.as_bytes();
        let first = match bytes.first_chunk::<KEY_BYTES>() {
            Some(first) => u64::from_be_bytes(*first),
            None => bytes.iter().fold(0, |key, byte| key << 8 | u64::from(*byte)),
        };
        Self { length: bytes.len(), first }
    }
}

impl Property {
    pub(super) fn new(name: &str, rules: Option<SubschemaId>, is_required: bool) -> Self {
        Self { key: Key::of(name), name: name.into(), rules, is_required }
    }

    /// Compares it with a name, in the order of members.
    fn order(&self, key: Key, name: &str) -> Ordering {
        // Short names are equal if their keys are.
        let beyond = || if key.length <= KEY_BYTES { Ordering::Equal } else { (*self.name).cmp(name) };
        self.key.cmp(&key).then_with(beyond)
    }
}

/// Members in the order of their keys.
#[derive(Debug, Default)]
pub struct PropertyMap {
    list: Vec<Property>,
    /// A table with a separate place for each of them, if one was found.
    places: Option<Places>,
}

/// A table in which no two members collide. Other names may collide with one, so the found member is compared.
#[derive(Debug)]
struct Places {
    factor: u64,
    shift: u32,
    members: Vec<u16>,
}

/// The maximum of members for such a table, and the number of attempts: among more members two always collide.
const PLACED_MAX: usize = 64;
const TRIES: u64 = 200;
/// Odd, with bits all over.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Places {
    fn find(list: &[Property]) -> Option<Self> {
        if list.is_empty() || list.len() > PLACED_MAX {
            return None;
        }
        let bits = (8 * list.len()).next_power_of_two().trailing_zeros();
        (0..TRIES).find_map(|number| {
            let factor = FACTOR.wrapping_mul(2 * number + 1);
            let mut places = Self { factor, shift: u64::BITS - bits, members: vec![u16::MAX; 1 << bits] };
            for (number, member) in (0..).zip(list) {
                let place = places.place(member.key);
                if std::mem::replace(&mut places.members[place], number) != u16::MAX {
                    return None;
                }
            }
            Some(places)
        })
    }

    fn place(&self, key: Key) -> usize {
        let mixed = (key.first ^ (key.length as u64).rotate_right(8)).wrapping_mul(self.factor);
        usize::try_from(mixed >> self.shift).unwrap_or_default()
    }
}

impl PropertyMap {
    /// Members whose names differ.
    pub(super) fn new(mut list: Vec<Property>) -> Self {
        list.sort_by(|left, right| left.order(right.key, &right.name));
        let places = Places::find(&list);
        Self { list, places }
    }

    /// The member of a name, by its number.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        let key = Key::of(name);
        let Some(places) = &self.places else {
            return self.list.binary_search_by(|member| member.order(key, name)).ok();
        };
        let number = usize::from(*places.members.get(places.place(key))?);
        self.list.get(number).filter(|member| member.order(key, name).is_eq()).map(|_| number)
    }
}

impl std::ops::Deref for PropertyMap {
    type Target = [Property];

    fn deref(&self) -> &[Property] {
        &self.list
    }
}

impl<'m> IntoIterator for &'m PropertyMap {
    type Item = &'m Property;
    type IntoIter = std::slice::Iter<'m, Property>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    proptest::proptest! {
        #[test]
        fn known_members_are_found(
            names in proptest::collection::btree_set("[a-c]{0,12}", 0..90),
            others in proptest::collection::vec("[a-c]{0,12}", 20),
        ) {
            let members = PropertyMap::new(names.iter().map(|name| Property::new(name, None, false)).collect());
            let found = |name: &str| members.find(name).map(|number| members[number].name.to_string());
            for name in names.iter().chain(&others) {
                let known: BTreeSet<_> = names.get(name).into_iter().cloned().collect();
                proptest::prop_assert_eq!(found(name), known.first().cloned());
            }
        }
    }
}
