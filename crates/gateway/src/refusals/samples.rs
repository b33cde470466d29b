//! Rejected events for the log: a few of each moment, and how many were left out. They have no value of an event in them.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use event::TypeName;
use tokio::sync::Notify;

use super::label::TypeLabel;
use crate::error_code::ErrorCode;
use crate::event_types::TypeRegistry;
use crate::problem::Problem;

/// Samples that wait for the log, which reads all of them once a second.
pub(crate) const SAMPLES_MAX: usize = 5;
/// Of these, samples of requests whose sender isn't known: many of them leave room for those of senders with a token.
const UNAUTHORIZED_MAX: usize = 2;
/// Bytes of a pointer that a sample has: a client may have chosen the names in it.
const POINTER_BYTES_MAX: usize = 200;

/// A rejected event, as the log shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalSample {
    /// When it was rejected, in microseconds since 1970: the log is written later.
    pub at: i64,
    /// Why.
    pub code: ErrorCode,
    /// The JSON pointer to the value at fault; none for a type whose transform hides something.
    pub pointer: Option<Box<str>>,
    /// A declared type; `other` for other types, empty if the type isn't known.
    pub type_name: Box<str>,
    /// The source of the request's token; empty without one.
    pub source: Arc<str>,
    /// The client's address.
    pub client: IpAddr,
    /// The line or element of a batch, from 1.
    pub line: Option<u32>,
}

/// The source of a request's token, and the client's address.
pub(crate) type Sender<'a> = (&'a Arc<str>, IpAddr);

/// What was rejected since the log was written last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusalNews {
    /// Some of it.
    pub samples: Vec<RefusalSample>,
    /// How many more there were.
    pub left_out: u64,
}

/// What waits for the log.
#[derive(Debug, Default)]
pub(crate) struct RefusalSamples {
    news: Mutex<RefusalNews>,
    has_news: Notify,
}

impl RefusalSample {
    /// A sample of what was rejected, of this type and from this source and client.
    pub(crate) fn of(
        types: &TypeRegistry,
        label: &TypeLabel,
        name: Option<&TypeName>,
        sender: Sender<'_>,
        problem: &Problem,
        line: Option<u32>,
    ) -> Self {
        let hides = name.is_some_and(|name| types.withholds(name));
        let (source, client) = sender;
        Self {
            at: clock::unix_microseconds(),
            code: problem.code,
            pointer: problem.pointer.as_deref().filter(|_| !hides).map(Self::shortened),
            type_name: label.as_str().into(),
            source: source.clone(),
            client,
            line,
        }
    }

    /// The beginning of a pointer.
    fn shortened(pointer: &str) -> Box<str> {
        let end = pointer.floor_char_boundary(POINTER_BYTES_MAX);
        if end == pointer.len() { pointer.into() } else { format!("{}…", &pointer[..end]).into() }
    }
}

impl RefusalNews {
    fn has_room_for(&self, code: ErrorCode) -> bool {
        let is_unauthorized = |code: ErrorCode| code == ErrorCode::Unauthorized;
        let unauthorized = self.samples.iter().filter(|sample| is_unauthorized(sample.code)).count();
        self.samples.len() < SAMPLES_MAX && (!is_unauthorized(code) || unauthorized < UNAUTHORIZED_MAX)
    }
}

impl RefusalSamples {
    /// An event is rejected with this code.
    pub(crate) fn add(&self, code: ErrorCode, sample: impl FnOnce() -> RefusalSample) {
        let mut news = self.hold();
        if news.has_room_for(code) {
            news.samples.push(sample());
        } else {
            news.left_out += 1;
        }
        self.has_news.notify_one();
    }

    /// Events of a batch are rejected, of which these are samples.
    pub(crate) fn add_all(&self, samples: Vec<RefusalSample>, rejected: u64) {
        if rejected == 0 {
            return;
        }
        let mut news = self.hold();
        let room = SAMPLES_MAX.saturating_sub(news.samples.len());
        let before = news.samples.len();
        news.samples.extend(samples.into_iter().take(room));
        news.left_out += rejected.saturating_sub((news.samples.len() - before) as u64);
        self.has_news.notify_one();
    }

    /// Waits for samples, and removes them.
    pub(crate) async fn news(&self) -> RefusalNews {
        loop {
            let news = std::mem::take(&mut *self.hold());
            if news != RefusalNews::default() {
                return news;
            }
            self.has_news.notified().await;
        }
    }

    fn hold(&self) -> MutexGuard<'_, RefusalNews> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(line: u32) -> RefusalSample {
        RefusalSample {
            at: 0,
            code: ErrorCode::Schema,
            pointer: Some("/a".into()),
            type_name: "orders".into(),
            source: "shop".into(),
            client: IpAddr::from([10, 0, 0, 7]),
            line: Some(line),
        }
    }

    #[tokio::test]
    async fn first_samples_are_shown_and_others_counted() {
        let samples = RefusalSamples::default();
        (1..=3).for_each(|line| samples.add(ErrorCode::Schema, || sample(line)));
        samples.add_all((4..=7).map(sample).collect(), 100);
        samples.add_all(Vec::new(), 0);
        let news = samples.news().await;
        let lines: Vec<_> = news.samples.iter().filter_map(|sample| sample.line).collect();
        assert_eq!((lines, news.left_out), (vec![1, 2, 3, 4, 5], 98));
        samples.add(ErrorCode::Schema, || sample(8));
        assert_eq!(samples.news().await, RefusalNews { samples: vec![sample(8)], left_out: 0 });
    }

    #[tokio::test]
    async fn requests_without_token_leave_room_for_others() {
        let samples = RefusalSamples::default();
        let unknown = || RefusalSample { code: ErrorCode::Unauthorized, ..sample(1) };
        (0..12).for_each(|_| samples.add(ErrorCode::Unauthorized, unknown));
        (2..=6).for_each(|line| samples.add(ErrorCode::Schema, || sample(line)));
        let news = samples.news().await;
        let lines: Vec<_> = news.samples.iter().filter_map(|sample| sample.line).collect();
        assert_eq!((lines, news.left_out), (vec![1, 1, 2, 3, 4], 12));
    }

    #[test]
    fn long_pointer_is_cut_between_characters() {
        assert_eq!(&*RefusalSample::shortened("/a/b"), "/a/b");
        let shortened = RefusalSample::shortened(&format!("/{}", "é".repeat(200)));
        assert_eq!(shortened.chars().count(), 1 + 99 + 1);
        assert!(shortened.ends_with("é…"));
    }
}
