//! Sends a batch until it is answered.

use std::borrow::Cow;
use std::io;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{Method, Request};
use net::http_client::full;
use serde::Deserialize;

use super::batch_result::BatchResult;
use super::counters::LoadCounters;
use super::state::sum;
use super::{Halt, Notify};
use crate::ServerConnector;
use crate::blocking_client::BlockingClient;
use crate::server::with_token;

/// How long a connection may take.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// No commit takes that long: a server that is silent for longer has gone.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// The first wait after a failure; each further one is twice as long.
const WAIT_MIN: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(5);
/// The longest wait that a server's Retry-After gets: the operator may have restarted it by then.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
/// An unreachable server is reported again after so many attempts: about once a minute.
const REPORT_EVERY: u32 = 16;
/// How soon a waiting sender notices that it is time to stop.
const STEP: Duration = Duration::from_millis(50);

/// The state that all senders of a load share.
pub(super) struct Post<'a> {
    pub(super) server: &'a ServerConnector,
    /// The path with the type.
    pub(super) path: String,
    pub(super) token: Option<&'a str>,
    pub(super) counters: &'a LoadCounters,
    pub(super) notify: Notify<'a>,
}

/// One worker, with a separate connection.
pub(super) struct Sender<'a> {
    post: &'a Post<'a>,
    client: BlockingClient,
}

/// The result of one attempt.
enum Attempt {
    Answered(BatchResult),
    /// Worth another one, after this time if the server says so.
    Failed {
        why: String,
        retry_after: Option<Duration>,
    },
}

impl<'a> Sender<'a> {
    pub(super) fn new(post: &'a Post<'a>) -> anyhow::Result<Self> {
        let client = post.server.client(CONNECT_MAX, SILENCE_MAX).context("can't create a client")?;
        Ok(Self { post, client })
    }

    /// Sends until there is an answer, and no line is for later; none when it is time to stop.
    pub(super) fn send(&self, key: &str, body: &[u8], halt: &Halt<'_>) -> anyhow::Result<Option<BatchResult>> {
        let (mut attempt, mut accepted) = (0, 0);
        loop {
            let (why, until, retry_after) = match self.attempt(key, body)? {
                Attempt::Answered(result) => {
                    let Some(why) = result.wants_again() else {
                        return Ok(Some(result.with_accepted_before(accepted)));
                    };
                    accepted += result.newly_stored();
                    (why, "the server accepts these lines", None)
                }
                Attempt::Failed { why, retry_after } => (why, "the server responds", retry_after),
            };
            attempt += 1;
            self.post.counters.change(|counts| counts.batches_again += 1);
            if is_reported(attempt) {
                let target = self.post.server.target();
                (self.post.notify)(&format!("{target}: {why}; tried {attempt} times, and retries until {until}"));
            }
            if !sleep(wait(key, attempt, retry_after), halt) {
                return Ok(None);
            }
        }
    }

    fn attempt(&self, key: &str, body: &[u8]) -> anyhow::Result<Attempt> {
        let Post { server, path, token, .. } = self.post;
        let request = Request::builder().method(Method::POST).uri(server.target().url(path));
        let request = request.header(USER_AGENT, "forebay-load").header(CONTENT_TYPE, "application/x-ndjson");
        let request = with_token(request.header("Idempotency-Key", key), *token).body(full(body.to_vec()))?;
        let response = match self.client.exchange(request, None) {
            Ok(response) => response,
            // A server that can't be trusted now can't be after a while either.
            Err(source) if source.kind() == io::ErrorKind::InvalidData => bail!("{}: {source}", server.target()),
            Err(error) => return Ok(Attempt::Failed { why: error.to_string(), retry_after: None }),
        };
        let attempt = match response.status {
            200 | 207 | 400 | 422 => BatchResult::parse(&response.body, body).map(Attempt::Answered),
            408 | 429 | 500..=599 => {
                let why = format!("the server responded with {}", response.status);
                Some(Attempt::Failed { why, retry_after: response.retry_after })
            }
            _ => None,
        };
        attempt.with_context(|| refusal(response.status, &response.body))
    }
}

/// Why the server rejects the request, with its message. A proxy before it may have another form.
fn refusal(status: u16, body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Problem<'a> {
        #[serde(borrow)]
        detail: Cow<'a, str>,
    }
    let detail = serde_json::from_slice::<Problem<'_>>(body).map(|problem| problem.detail.into_owned());
    let words = detail.unwrap_or_else(|_| String::from_utf8_lossy(body).into_owned());
    let advice = if matches!(status, 401 | 403) { "; set FOREBAY_TOKEN to a token with the scope ingest" } else { "" };
    format!("the server responded with {status}: {}{advice}", text::escape_control(words.trim_end()))
}

/// The first failures may be a restart: not worth a message. An unreachable server is reported again.
const fn is_reported(attempt: u32) -> bool {
    attempt == 4 || attempt.is_multiple_of(REPORT_EVERY)
}

/// How long to wait before the next attempt. Half of it follows from the key, which spreads the workers' attempts.
fn wait(key: &str, attempt: u32, retry_after: Option<Duration>) -> Duration {
    if let Some(asked) = retry_after {
        return asked.min(RETRY_AFTER_MAX);
    }
    let whole = (WAIT_MIN * (1 << (attempt - 1).min(16))).min(WAIT_MAX);
    let share = sum(format!("{key} {attempt}").as_bytes()) % 1000;
    whole / 2 + whole * u32::try_from(share).unwrap_or(0) / 2000
}

/// False where it is time to stop.
fn sleep(duration: Duration, halt: &Halt<'_>) -> bool {
    let mut left = duration;
    while !left.is_zero() {
        if halt.is_set() {
            return false;
        }
        let step = left.min(STEP);
        thread::sleep(step);
        left -= step;
    }
    !halt.is_set()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_differ() {
        for attempt in 1..40 {
            let waited = wait("key", attempt, None);
            let whole = (WAIT_MIN * (1 << (attempt - 1).min(10))).min(WAIT_MAX);
            assert!(waited >= whole / 2 && waited <= whole, "{attempt}: {waited:?}");
        }
        assert_ne!(wait("a", 5, None), wait("b", 5, None));
        assert_eq!([7, 7000].map(|asked| wait("a", 1, Some(Duration::from_secs(asked))).as_secs()), [7, 60]);
    }

    #[test]
    fn rejection_shows_the_servers_message() {
        for (status, body, expected) in [
            (
                404,
                r#"{"code":"unknown_type","detail":"no type \"a\""}"#,
                "the server responded with 404: no type \"a\"",
            ),
            (502, "<html>\u{1b}[31m\n", "the server responded with 502: <html>\\u001b[31m"),
            (
                401,
                r#"{"detail":"no token"}"#,
                "the server responded with 401: no token; set FOREBAY_TOKEN to a token with the scope ingest",
            ),
        ] {
            assert_eq!(refusal(status, body.as_bytes()), expected);
        }
    }
}
