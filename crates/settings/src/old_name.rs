//! Settings, and words that are their values, under the names that earlier versions had. They are accepted for a while, with a warning.

/// The help of each old name's warning.
pub(crate) const UNTIL: &str = "the old name is accepted until version 0.2";

/// A setting that had another name, or values with other names.
#[derive(Debug)]
pub struct OldName {
    /// The path of its table. `*` matches any name.
    pub table: &'static [&'static str],
    /// Its name.
    pub key: &'static str,
    /// Its old name, if it had another one.
    pub old_key: Option<&'static str>,
    /// Old values, each with the new one.
    pub old_values: &'static [(&'static str, &'static str)],
}

impl OldName {
    /// Whether the setting is in the table at this path.
    #[must_use]
    pub fn is_in(&self, path: &[String]) -> bool {
        let is_part = |(name, part): (&&str, &String)| *name == "*" || name == part;
        self.table.len() == path.len() && self.table.iter().zip(path).all(is_part)
    }
}
