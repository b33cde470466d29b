//! The dedupe windows that the transforms of one request's types have used.

use std::sync::Arc;

use eventlog::Shard;
use transform::{WindowMark, Windows};

use crate::event_types::{Slot, TransformHandle};

/// How many commits were rejected before a request began.
#[derive(Clone, Copy)]
pub(crate) enum Epoch<'a> {
    Known(u64),
    /// The sum over these shards. A request whose type has no transform never asks for it.
    Of(&'a [Arc<Shard>]),
}

impl Epoch<'_> {
    pub(crate) fn refused_commits(self) -> u64 {
        match self {
            Self::Known(commits) => commits,
            Self::Of(shards) => shards.iter().map(|shard| shard.counters().commits_refused.get()).sum(),
        }
    }
}

/// The windows by type. Usually a request has events of one type, which needs no allocation.
#[derive(Debug, Default)]
pub(crate) struct WindowSet {
    first: Option<(Slot, Windows)>,
    others: Vec<(Slot, Windows)>,
    /// Commits that had been rejected when the first of them was opened.
    pub(crate) refused_commits: u64,
}

impl WindowSet {
    /// A set with windows that exist already.
    pub(super) fn with(slot: Slot, windows: Windows) -> Self {
        Self { first: Some((slot, windows)), ..Self::default() }
    }

    /// The same for another cache of types, which has the only type at this slot.
    pub(super) fn moved_to(self, slot: Slot) -> Self {
        Self { first: self.first.map(|(_, windows)| (slot, windows)), ..self }
    }

    /// The windows of a type's transform.
    pub(super) fn open(&mut self, slot: Slot, transform: &TransformHandle, epoch: Epoch<'_>) -> &mut Windows {
        let Self { first, others, refused_commits } = self;
        let is_first = first.as_ref().is_none_or(|(known, _)| *known == slot);
        if is_first {
            let open = || {
                *refused_commits = epoch.refused_commits();
                (slot, transform.windows(*refused_commits))
            };
            return &mut first.get_or_insert_with(open).1;
        }
        let at = others.iter().position(|(known, _)| *known == slot).unwrap_or_else(|| {
            others.push((slot, transform.windows(*refused_commits)));
            others.len() - 1
        });
        &mut others[at].1
    }

    /// Forgets what the windows of a type have seen since `mark`.
    pub(super) fn forget_since(&mut self, slot: Slot, mark: WindowMark) {
        let windows = self.iter_mut().find(|(known, _)| *known == slot);
        windows.into_iter().for_each(|(_, windows)| windows.forget_since(mark));
    }

    /// The events are appended: all requests see their values.
    pub(crate) fn keep(&mut self) {
        self.iter_mut().for_each(|(_, windows)| windows.keep());
    }

    /// Nothing of the request is accepted.
    pub(super) fn clear(&mut self) {
        (self.first, self.others) = (None, Vec::new());
    }

    /// The types that have windows.
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.first.iter().chain(&self.others).map(|(slot, _)| *slot)
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut (Slot, Windows)> {
        self.first.iter_mut().chain(&mut self.others)
    }
}
