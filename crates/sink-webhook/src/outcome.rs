//! What a receiver's answer means, by the standard and by what servers do.

use http::{HeaderMap, StatusCode};

use super::error::{Failure, answered};
use super::fault::fault;
use net::http_client::retry_after;
use sink::{Fault, Reason};

/// What became of one message.
#[derive(Debug)]
pub(super) enum Outcome {
    Taken,
    /// The receiver rejects the message, or all messages.
    Rejected(Reason),
    /// The receiver failed on it, and may take it another time.
    NotYet(Reason),
    /// Nothing is taken now, whatever is sent.
    Away(Failure),
    /// The status doesn't say which: it is about the message if the receiver takes others, else about the receiver.
    Unclear(Failure),
}

impl Outcome {
    /// What an answer means.
    pub(super) fn of(status: StatusCode, headers: &HeaderMap, words: String) -> Self {
        let reason = || -> Reason { answered("the receiver", status, &words).into() };
        match status.as_u16() {
            200..=299 => Self::Taken,
            other => match fault(other) {
                Some(Fault::Record | Fault::Unclear) => Self::Rejected(reason()),
                Some(Fault::Passing) => Self::NotYet(reason()),
                Some(Fault::Store) => Self::Away(Failure::Status(status, words, retry_after(headers))),
                // Whether the receiver is away is decided when the others have their answers: nothing is to be waited for yet.
                None => Self::Unclear(Failure::Status(status, words, None)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use sink::SinkError;

    use super::*;

    fn of(status: u16) -> Outcome {
        Outcome::of(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), "words".to_owned())
    }

    #[test]
    fn what_is_wrong_with_a_message_is_told_from_what_is_wrong_with_its_receiver() {
        assert!([200, 202, 204].into_iter().all(|status| matches!(of(status), Outcome::Taken)));
        assert!([400, 413, 415, 422].into_iter().all(|status| matches!(of(status), Outcome::Rejected(_))));
        assert!([408, 409, 500].into_iter().all(|status| matches!(of(status), Outcome::NotYet(_))));
        let url = "https://a/s3cret".parse().unwrap();
        for (status, acts) in
            [(301, true), (401, true), (404, true), (410, true), (429, false), (502, false), (503, false)]
        {
            let ((Outcome::Away(failure), false) | (Outcome::Unclear(failure), true)) = (of(status), acts) else {
                panic!("{status}")
            };
            let error = failure.into_sink_error(&url);
            assert_eq!(matches!(error, SinkError::Misconfigured(_)), acts, "{error}");
            assert!(error.to_string().contains("words") && !error.to_string().contains("s3cret"), "{error}");
        }
    }
}
