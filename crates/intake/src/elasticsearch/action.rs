//! Actions of the bulk API: a verb, an index and an id.

use std::borrow::Cow;

/// What an action does with its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Create,
    Index,
    Update,
    Delete,
}

/// An action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Action<'a> {
    pub(super) verb: Verb,
    pub(super) index: Option<Cow<'a, str>>,
    pub(super) id: Option<Cow<'a, str>>,
}

impl Verb {
    /// All verbs, in the order of their numbers.
    pub(super) const ALL: [Self; 4] = [Self::Create, Self::Index, Self::Update, Self::Delete];

    /// Its number.
    pub(super) const fn number(self) -> u32 {
        match self {
            Self::Create => 0,
            Self::Index => 1,
            Self::Update => 2,
            Self::Delete => 3,
        }
    }

    /// The verb of a number.
    pub(super) const fn numbered(number: u32) -> Self {
        match number {
            0 => Self::Create,
            1 => Self::Index,
            2 => Self::Update,
            _ => Self::Delete,
        }
    }

    /// The verb of a name.
    pub(super) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == name)
    }

    /// Its name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Index => "index",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }

    /// Whether it is accepted: Forebay only adds events.
    pub(super) const fn is_accepted(self) -> bool {
        matches!(self, Self::Create | Self::Index)
    }
}
