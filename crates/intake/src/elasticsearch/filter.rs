//! The parameter `filter_path`: the members that a response has.
//!
//! A path lists names with dots. `*` is any text within a name, `**` any number of names. A path with `-` removes members.

use super::action::Verb;

/// Which members the response of the bulk API has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) took: bool,
    pub(super) errors: bool,
    items: [ItemShown; Verb::ALL.len()],
}

/// Which members an item has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ItemShown {
    pub(super) index: bool,
    pub(super) id: bool,
    pub(super) version: bool,
    pub(super) result: bool,
    pub(super) status: bool,
    pub(super) error_type: bool,
    pub(super) error_reason: bool,
}

impl Shown {
    /// The members that the value of the parameter shows; without one, all.
    pub(super) fn of(filter: Option<&str>) -> Self {
        let filter = Filter::of(filter.unwrap_or_default());
        let items = Verb::ALL.map(|verb| {
            let shows = |member: &[&str]| filter.shows(&[&["items", verb.name()], member].concat());
            ItemShown {
                index: shows(&["_index"]),
                id: shows(&["_id"]),
                version: shows(&["_version"]),
                result: shows(&["result"]),
                status: shows(&["status"]),
                error_type: shows(&["error", "type"]),
                error_reason: shows(&["error", "reason"]),
            }
        });
        Self { took: filter.shows(&["took"]), errors: filter.shows(&["errors"]), items }
    }

    /// The members of an item.
    pub(super) const fn item(&self, verb: Verb) -> ItemShown {
        match verb {
            Verb::Create => self.items[0],
            Verb::Index => self.items[1],
            Verb::Update => self.items[2],
            Verb::Delete => self.items[3],
        }
    }

    /// Whether any item has its id.
    pub(super) fn shows_ids(&self) -> bool {
        self.items.iter().any(|item| item.id)
    }

    /// Whether any item has its index.
    pub(super) fn shows_indexes(&self) -> bool {
        self.items.iter().any(|item| item.index)
    }
}

struct Filter<'f> {
    included: Vec<Vec<&'f str>>,
    excluded: Vec<Vec<&'f str>>,
}

impl<'f> Filter<'f> {
    fn of(text: &'f str) -> Self {
        let (mut included, mut excluded) = (Vec::new(), Vec::new());
        for path in text.split(',').map(str::trim).filter(|path| !path.is_empty()) {
            match path.strip_prefix('-') {
                Some(path) => excluded.push(names(path)),
                None => included.push(names(path)),
            }
        }
        Self { included, excluded }
    }

    fn shows(&self, member: &[&str]) -> bool {
        let is_in = |paths: &[Vec<&str>]| paths.iter().any(|path| covers(path, member));
        (self.included.is_empty() || is_in(&self.included)) && !is_in(&self.excluded)
    }
}

/// The names of a path. Of several `**` one is kept: they mean the same.
fn names(path: &str) -> Vec<&str> {
    let mut names: Vec<&str> = path.split('.').collect();
    names.dedup_by(|name, before| *name == "**" && *before == "**");
    names
}

/// Whether a path is that of a member, or of an object or array that has it.
fn covers(path: &[&str], member: &[&str]) -> bool {
    match (path, member) {
        ([], _) => true,
        (["**", rest @ ..], _) => (0..=member.len()).any(|skipped| covers(rest, &member[skipped..])),
        ([name, rest @ ..], [first, further @ ..]) => matches(name, first) && covers(rest, further),
        ([_, ..], []) => false,
    }
}

/// Whether a name with `*` matches.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(begin) else { return false };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*').filter(|part| !part.is_empty()) {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: ItemShown = ItemShown {
        index: true,
        id: true,
        version: true,
        result: true,
        status: true,
        error_type: true,
        error_reason: true,
    };
    const NONE: ItemShown = ItemShown {
        index: false,
        id: false,
        version: false,
        result: false,
        status: false,
        error_type: false,
        error_reason: false,
    };
    const ERROR: ItemShown = ItemShown { error_type: true, error_reason: true, ..NONE };

    #[test]
    fn filter_shows_listed_members() {
        for (filter, took, errors, create) in [
            ("", true, true, ALL),
            ("errors,items.*.error,items.*.status", false, true, ItemShown { status: true, ..ERROR }),
            (
                "items.*._index,items.*.status,items.*.failure_store,items.*.error.type,items.*.error.reason",
                false,
                false,
                ItemShown { index: true, status: true, ..ERROR },
            ),
            ("took,errors,items.create._id", true, true, ItemShown { id: true, ..NONE }),
            ("items.index", false, false, NONE),
            ("items", false, false, ALL),
            ("*", true, true, ALL),
            ("**.reason", false, false, ItemShown { error_reason: true, ..NONE }),
            ("**.**.error.**.type", false, false, ItemShown { error_type: true, ..NONE }),
            ("-took,-items.*._id", false, true, ItemShown { id: false, ..ALL }),
            ("items,-**._*", false, false, ItemShown { index: false, id: false, version: false, ..ALL }),
            ("e*r*s", false, true, NONE),
            ("t*x,*x*k,e*r*o*z", false, false, NONE),
            ("items.*.status.code", false, false, NONE),
        ] {
            let shown = Shown::of(Some(filter));
            assert_eq!((shown.took, shown.errors, shown.item(Verb::Create)), (took, errors, create), "{filter}");
        }
        assert_eq!(Shown::of(Some("items.index")).item(Verb::Index), ALL);
        assert_eq!(Shown::of(None), Shown::of(Some("")));
    }
}
