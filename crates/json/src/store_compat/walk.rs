//! Goes through a JSON text that was checked, and knows at each string and at the end of each object where it is.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

use crate::parts::decode_name;
use crate::pointer::push_step;
use crate::scan::string_end;

/// A member's name.
pub(super) struct Key<'a> {
    /// Where its quote stands.
    pub(super) start: usize,
    pub(super) name: Cow<'a, str>,
}

/// What is met on the way.
pub(super) enum Met<'k, 'a> {
    /// A string, or a member's name.
    Text { place: Range<usize>, is_name: bool },
    /// The end of an object with these members, in their order.
    Members(&'k [Key<'a>]),
}

/// One of the steps down to where it is.
pub(super) enum Step<'k, 'a> {
    Member(Option<&'k Key<'a>>),
    Element(usize),
}

struct Level {
    /// Where the object's names begin among those of all that are open; nothing for an array.
    names_from: Option<usize>,
    /// The number of the element.
    element: usize,
}

/// The levels that are open, from the outermost.
pub(super) struct Parents<'k, 'a> {
    levels: &'k [Level],
    keys: &'k [Key<'a>],
}

impl<'k, 'a> Parents<'k, 'a> {
    fn steps(&self) -> impl Iterator<Item = Step<'k, 'a>> + use<'k, 'a> {
        let (levels, keys) = (self.levels, self.keys);
        levels.iter().enumerate().map(move |(number, level)| match level.names_from {
            None => Step::Element(level.element),
            Some(from) => {
                let end = levels[number + 1..].iter().find_map(|inner| inner.names_from).unwrap_or(keys.len());
                Step::Member(keys[from..end].last())
            }
        })
    }
}

/// Goes through `json`, until `visit` says that it is enough.
pub(super) fn walk<'a, R>(
    json: &'a str,
    visit: &mut impl FnMut(Met<'_, 'a>, &Parents<'_, 'a>) -> ControlFlow<R>,
) -> Option<R> {
    let bytes = json.as_bytes();
    let (mut levels, mut keys): (Vec<Level>, Vec<Key<'a>>) = (Vec::new(), Vec::new());
    let (mut at, mut is_name) = (0, false);
    while let Some(byte) = bytes.get(at) {
        let mut end = at + 1;
        let mut flow = ControlFlow::Continue(());
        match byte {
            b'"' => {
                let escaped;
                (end, escaped) = string_end(bytes, at);
                let parents = Parents { levels: &levels, keys: &keys };
                flow = visit(Met::Text { place: at..end, is_name }, &parents);
                if std::mem::take(&mut is_name) {
                    keys.push(Key { start: at, name: decode_name(&json[at..end], escaped) });
                }
            }
            b'{' => {
                levels.push(Level { names_from: Some(keys.len()), element: 0 });
                is_name = true;
            }
            b'[' => {
                levels.push(Level { names_from: None, element: 0 });
                is_name = false;
            }
            b',' => {
                if let Some(level) = levels.last_mut() {
                    level.element += 1;
                    is_name = level.names_from.is_some();
                }
            }
            b'}' => {
                let from = levels.pop().and_then(|level| level.names_from).unwrap_or(keys.len());
                let (outer, own) = keys.split_at(from);
                flow = visit(Met::Members(own), &Parents { levels: &levels, keys: outer });
                keys.truncate(from);
                is_name = false;
            }
            b']' => drop(levels.pop()),
            _ => {}
        }
        if let ControlFlow::Break(result) = flow {
            return Some(result);
        }
        at = end;
    }
    None
}

/// The pointer to what stands below `parents`: to a member of this name, if it is one of those.
pub(super) fn pointer(parents: &Parents<'_, '_>, member: Option<&str>) -> String {
    let mut text = String::new();
    for step in parents.steps() {
        match step {
            Step::Member(key) => key.into_iter().for_each(|key| push_step(&mut text, &key.name)),
            Step::Element(element) => push_step(&mut text, &element.to_string()),
        }
    }
    member.into_iter().for_each(|name| push_step(&mut text, name));
    text
}

/// The pointer to the string in which the byte at `offset` stands; to the object, if that is a name.
pub(super) fn pointer_to(json: &str, offset: usize) -> String {
    let found = walk(json, &mut |met, parents| match met {
        Met::Text { place, is_name } if place.contains(&offset) => {
            let whole = pointer(parents, None);
            // The name before it is another member's.
            let parent = whole.rfind('/').filter(|_| is_name && parents.last_has_name());
            ControlFlow::Break(parent.map_or_else(|| whole.clone(), |end| whole[..end].to_owned()))
        }
        _ => ControlFlow::Continue(()),
    });
    found.unwrap_or_default()
}

impl Parents<'_, '_> {
    fn last_has_name(&self) -> bool {
        matches!(self.steps().last(), Some(Step::Member(Some(_))))
    }
}
