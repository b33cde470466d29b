//! The service as tools see it: `$SRV.PING`, `$SRV.INFO` and `$SRV.STATS` of NATS micro services (ADR-32).

use std::cell::RefCell;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use ::metrics::Counter;
use nats::Subject;
use serde_json::{Value, json};
use text::rfc3339;

/// Servers with this queue group share the requests.
pub(super) const QUEUE_GROUP: &str = "forebay";
const NAME: &str = "forebay-events";

/// A question about the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Ping,
    Info,
    Stats,
}

impl Counts {
    fn add(&mut self, requests: u64, time: Duration, error: Option<String>) {
        self.requests += requests;
        self.time += time;
        if let Some(error) = error {
            self.errors += requests;
            self.last_error = error;
        }
    }
}

/// The instance and its counts since its start.
pub(super) struct Identity {
    id: String,
    subject: String,
    started: String,
    counts: RefCell<Counts>,
}

/// What the process has answered, for metrics.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// Events.
    pub(crate) events: Counter,
    /// Errors.
    pub(crate) errors: Counter,
    /// Nothing: the request or the answer found no room, or the client can't be answered.
    pub(crate) none: Counter,
}

static ANSWERS: OnceLock<Answers> = OnceLock::new();

/// What the process has answered, if it has `[bus.events]`.
pub(crate) fn answers() -> Option<&'static Answers> {
    ANSWERS.get()
}

#[derive(Default)]
struct Counts {
    requests: u64,
    errors: u64,
    last_error: String,
    time: Duration,
    /// Requests that found no room, which the others include.
    dropped: u64,
}

impl Identity {
    /// # Errors
    /// The system gives no random bytes.
    pub(super) fn new(subject: &Subject) -> io::Result<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        ANSWERS.get_or_init(Answers::default);
        Ok(Self {
            id: text::hex::encode(&random),
            subject: subject.to_string(),
            started: rfc3339::format(clock::unix_microseconds()),
            counts: RefCell::default(),
        })
    }

    /// Where questions come: to all services, to those of the name, to this one.
    pub(super) fn subjects(&self) -> Vec<(Verb, Subject)> {
        let mut subjects = Vec::new();
        for (verb, name) in [(Verb::Ping, "PING"), (Verb::Info, "INFO"), (Verb::Stats, "STATS")] {
            let all = format!("$SRV.{name}");
            let id = &self.id;
            for subject in [format!("{all}.{NAME}.{id}"), format!("{all}.{NAME}"), all] {
                subjects.extend(subject.parse().ok().map(|subject| (verb, subject)));
            }
        }
        subjects
    }

    /// Counts a request that was answered with its event after so long.
    pub(super) fn found(&self, time: Duration) {
        self.counts.borrow_mut().add(1, time, None);
        answers().inspect(|answers| answers.events.add(1));
    }

    /// Counts a request that was answered with an error after so long.
    pub(super) fn failed(&self, time: Duration, error: String) {
        self.counts.borrow_mut().add(1, time, Some(error));
        answers().inspect(|answers| answers.errors.add(1));
    }

    /// Counts a request that wasn't answered.
    pub(super) fn unanswered(&self, time: Duration, error: String) {
        self.counts.borrow_mut().add(1, time, Some(error));
        answers().inspect(|answers| answers.none.add(1));
    }

    /// Counts the requests that found no room since the start.
    pub(super) fn dropped(&self, all: u64) {
        let mut counts = self.counts.borrow_mut();
        let more = all - counts.dropped;
        if more > 0 {
            counts.dropped = all;
            counts.add(more, Duration::ZERO, Some("503:more requests came together than can wait".to_owned()));
            answers().inspect(|answers| answers.none.add(more));
        }
    }

    /// The answer to a question.
    pub(super) fn about(&self, verb: Verb) -> String {
        let mut about = json!({
            "name": NAME,
            "id": self.id,
            "version": env!("CARGO_PKG_VERSION"),
            "metadata": {},
            "type": match verb {
                Verb::Ping => "io.nats.micro.v1.ping_response",
                Verb::Info => "io.nats.micro.v1.info_response",
                Verb::Stats => "io.nats.micro.v1.stats_response",
            },
        });
        let mut endpoint = json!({ "name": "get", "subject": self.subject, "queue_group": QUEUE_GROUP });
        match verb {
            Verb::Ping => {}
            Verb::Info => {
                endpoint["metadata"] = json!({});
                about["description"] = "stored events by their ids".into();
                about["endpoints"] = Value::Array(vec![endpoint]);
            }
            Verb::Stats => {
                let counts = self.counts.borrow();
                let nanoseconds = u64::try_from(counts.time.as_nanos()).unwrap_or(u64::MAX);
                endpoint["num_requests"] = counts.requests.into();
                endpoint["num_errors"] = counts.errors.into();
                endpoint["last_error"] = counts.last_error.as_str().into();
                endpoint["processing_time"] = nanoseconds.into();
                endpoint["average_processing_time"] = (nanoseconds / counts.requests.max(1)).into();
                about["started"] = self.started.as_str().into();
                about["endpoints"] = Value::Array(vec![endpoint]);
            }
        }
        about.to_string()
    }
}
