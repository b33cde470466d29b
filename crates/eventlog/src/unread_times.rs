//! Times of events that could not be read, counted by type since the start. Such events count as happened when they were received, so
//! operators must see them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use event::TypeName;
use tokio::sync::Notify;

/// The counts of a process.
#[derive(Debug, Default)]
pub struct UnreadTimes {
    types: Mutex<BTreeMap<TypeName, Unread>>,
    news: Notify,
}

#[derive(Debug)]
struct Unread {
    events: u64,
    /// Of the first event, until it was logged.
    reason: Option<String>,
}

impl UnreadTimes {
    /// Counts an event. The reason of the first one of each type is kept to be logged.
    pub fn add(&self, type_name: &TypeName, reason: &str) {
        let mut types = self.hold();
        if let Some(unread) = types.get_mut(type_name) {
            unread.events += 1;
            return;
        }
        types.insert(type_name.clone(), Unread { events: 1, reason: Some(reason.to_owned()) });
        self.news.notify_one();
    }

    /// How many events there were of each type.
    #[must_use]
    pub fn counts(&self) -> Vec<(TypeName, u64)> {
        self.hold().iter().map(|(name, unread)| (name.clone(), unread.events)).collect()
    }

    /// Waits for types that are counted for the first time, and gives each once, with the reason.
    pub async fn news(&self) -> Vec<(TypeName, String)> {
        loop {
            let news: Vec<_> = {
                let mut types = self.hold();
                types.iter_mut().filter_map(|(name, unread)| Some((name.clone(), unread.reason.take()?))).collect()
            };
            if !news.is_empty() {
                return news;
            }
            self.news.notified().await;
        }
    }

    fn hold(&self) -> MutexGuard<'_, BTreeMap<TypeName, Unread>> {
        self.types.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
