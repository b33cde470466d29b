//! The type of a rejected request or event, as a label of a metric. Clients choose names of types: labels are only those that the
//! configuration declares.

use event::TypeName;

use crate::error_code::ErrorCode;
use crate::event_types::TypeRegistry;

/// The label of everything that has no separate label.
pub(crate) const OTHER: &str = "other";

/// The label of a type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TypeLabel {
    /// It isn't known: the request was rejected before its type was read, or has none.
    None,
    /// A type without a table, or an unknown one.
    Other,
    Declared(TypeName),
}

impl TypeLabel {
    /// The label of the type `name`, if it is known, of what was rejected with `code`.
    pub(crate) fn of(types: &TypeRegistry, name: Option<&TypeName>, code: ErrorCode) -> Self {
        match name {
            Some(name) if types.is_declared(name) => Self::Declared(name.clone()),
            None if !matches!(code, ErrorCode::UnknownType | ErrorCode::TooManyTypes) => Self::None,
            _ => Self::Other,
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::None => "",
            Self::Other => OTHER,
            Self::Declared(name) => name.as_str(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event_types::{GatewayTypes, TypeRules};

    #[test]
    fn only_configured_types_have_separate_labels() {
        let [declared, open] = ["orders", "made-up"].map(|name| TypeName::new(name).unwrap());
        let types = GatewayTypes {
            named: [(declared.clone(), TypeRules::default())].into(),
            open: Some(TypeRules::default()),
            ..GatewayTypes::default()
        };
        let types = TypeRegistry::new(types, &Arc::default());
        let label = |name, code| TypeLabel::of(&types, name, code).as_str().to_owned();
        assert_eq!(label(Some(&declared), ErrorCode::Schema), "orders");
        assert_eq!(label(Some(&open), ErrorCode::Schema), "other");
        assert_eq!(label(None, ErrorCode::UnknownType), "other");
        assert_eq!(label(None, ErrorCode::Unauthorized), "");
    }
}
