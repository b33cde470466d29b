//! A type-erased store, so the cases are compiled once and not for each store.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;

use event::EventId;

use super::SinkHarness;
use sink::Sink;

pub(super) type Waiting<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A kind of store as the cases use it: the constants of its [`SinkHarness`], and a constructor.
#[derive(Clone, Copy)]
pub(super) struct Suite {
    pub(super) compares: bool,
    pub(super) recognises_ids: bool,
    pub(super) rejects: bool,
    pub(super) all_or_nothing: bool,
    pub(super) has_own_mark: bool,
    pub(super) shares_faults: bool,
    pub(super) as_kept: fn(&[u8]) -> Vec<u8>,
    fresh: fn() -> Waiting<'static, Box<dyn Store>>,
}

impl Suite {
    pub(super) fn of<S: SinkHarness>() -> Self {
        Self {
            compares: S::COMPARES,
            recognises_ids: S::RECOGNISES_IDS,
            rejects: S::REJECTS,
            all_or_nothing: S::ALL_OR_NOTHING,
            has_own_mark: S::HAS_OWN_MARK,
            shares_faults: S::SHARES_FAULTS,
            as_kept: S::as_kept,
            fresh: || Box::pin(async { Box::new(S::fresh().await) as Box<dyn Store> }),
        }
    }

    pub(super) async fn fresh(self) -> Box<dyn Store> {
        (self.fresh)().await
    }
}

/// The methods of a [`SinkHarness`], type-erased.
pub(super) trait Store {
    fn sink(&self) -> Sink;
    fn rows(&self) -> Waiting<'_, Vec<(EventId, Vec<u8>)>>;
    fn poison(&self, id: EventId) -> Waiting<'_, ()>;
    fn outage(&self, stage: usize) -> Waiting<'_, Option<Box<dyn Any>>>;
    fn stall(&self) -> Waiting<'_, Box<dyn Any>>;
}

impl<S: SinkHarness> Store for S {
    fn sink(&self) -> Sink {
        SinkHarness::sink(self)
    }

    fn rows(&self) -> Waiting<'_, Vec<(EventId, Vec<u8>)>> {
        Box::pin(SinkHarness::rows(self))
    }

    fn poison(&self, id: EventId) -> Waiting<'_, ()> {
        Box::pin(SinkHarness::poison(self, id))
    }

    fn outage(&self, stage: usize) -> Waiting<'_, Option<Box<dyn Any>>> {
        Box::pin(
            async move { SinkHarness::outage(self, stage).await.map(|hindrance| Box::new(hindrance) as Box<dyn Any>) },
        )
    }

    fn stall(&self) -> Waiting<'_, Box<dyn Any>> {
        Box::pin(async { Box::new(SinkHarness::stall(self).await) as Box<dyn Any> })
    }
}
