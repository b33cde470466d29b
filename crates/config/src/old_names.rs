//! Settings and values that had other names in earlier versions.

use settings::OldName;

const fn renamed(table: &'static [&'static str], old: &'static str, key: &'static str) -> OldName {
    OldName { table, key, old_key: Some(old), old_values: &[] }
}

/// All old names. To rename a setting is to add it here, and to change its key where it is read.
pub(crate) const OLD_NAMES: &[OldName] = &[
    renamed(&["gateway"], "open", "allow_anonymous"),
    renamed(&["writer"], "open", "allow_anonymous"),
    renamed(&["types", "*"], "names", "aliases"),
    OldName {
        old_values: &[("any", "accept"), ("refuse", "reject")],
        ..renamed(&["types", "*"], "text", "unstorable")
    },
    renamed(&["types", "*", "aggregate", "*"], "quiet", "idle_timeout"),
    OldName {
        table: &["types", "*", "aggregate", "*"],
        key: "late",
        old_key: None,
        old_values: &[("part", "separate")],
    },
    renamed(&["sinks", "*"], "keep", "retention"),
];

/// The new name of a key in any table; the key itself if it has none.
pub(crate) fn current(key: &str) -> &str {
    OLD_NAMES.iter().find(|renamed| renamed.old_key == Some(key)).map_or(key, |renamed| renamed.key)
}

/// The old names of settings of sinks.
pub(crate) fn old_keys_of_sinks() -> impl Iterator<Item = &'static str> {
    OLD_NAMES.iter().filter(|renamed| renamed.table.first() == Some(&"sinks")).filter_map(|renamed| renamed.old_key)
}

/// The path of a setting, from its path with the old name.
#[must_use]
pub fn new_path(old: &str) -> Option<String> {
    let (table, key) = old.rsplit_once('.')?;
    let parts: Vec<String> = table.split('.').map(str::to_owned).collect();
    let renamed = OLD_NAMES.iter().find(|renamed| renamed.old_key == Some(key) && renamed.is_in(&parts))?;
    Some(format!("{table}.{}", renamed.key))
}
