//! Other names under which clients send events of a type, such as `Order Completed` for `order-completed`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use event::TypeName;

/// The other names of all types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeNames {
    exact: BTreeMap<Box<str>, TypeName>,
    /// Compared in lower case.
    lowercase: BTreeMap<Box<str>, TypeName>,
    /// Types without a table have names in lower case.
    lowers_all: bool,
}

impl TypeNames {
    /// Adds the other names of a type. With `lowercase` case doesn't matter in these and in the type's own name.
    pub fn add(&mut self, name: &TypeName, others: impl IntoIterator<Item = impl AsRef<str>>, lowercase: bool) {
        for other in others {
            let other = other.as_ref();
            if lowercase {
                self.lowercase.insert(other.to_lowercase().into(), name.clone());
            } else {
                self.exact.insert(other.into(), name.clone());
            }
        }
        if lowercase {
            self.lowercase.insert(name.as_str().into(), name.clone());
        }
    }

    /// Takes the names of types without a table in lower case.
    pub const fn lower_all(&mut self) {
        self.lowers_all = true;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.lowercase.is_empty() && !self.lowers_all
    }

    /// The type of a name or alias.
    pub(crate) fn resolve<'n>(&'n self, name: &'n str) -> Cow<'n, str> {
        if let Some(found) = self.exact.get(name) {
            return found.as_str().into();
        }
        if self.lowercase.is_empty() && !self.lowers_all {
            return name.into();
        }
        let lowered: Cow<'_, str> =
            if name.chars().any(char::is_uppercase) { name.to_lowercase().into() } else { name.into() };
        match self.lowercase.get(&*lowered) {
            Some(found) => found.as_str().into(),
            None if self.lowers_all => lowered,
            None => name.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> TypeName {
        TypeName::new(text).unwrap()
    }

    #[test]
    fn names_resolve_to_their_types() {
        let mut names = TypeNames::default();
        assert!(names.is_empty());
        names.add(&name("order"), ["Order Completed", "ORDER"], false);
        names.add(&name("page-view"), ["page view"], true);
        for (sent, expected) in [
            ("Order Completed", "order"),
            ("order completed", "order completed"),
            ("ORDER", "order"),
            ("Order", "Order"),
            ("Page-View", "page-view"),
            ("page-view", "page-view"),
            ("PAGE VIEW", "page-view"),
            ("Other", "Other"),
        ] {
            assert_eq!(names.resolve(sent), expected, "{sent}");
        }
        names.lower_all();
        assert_eq!((names.resolve("Other"), names.resolve("Order")), ("other".into(), "order".into()));
    }
}
