//! The meaning of a receiver's response, by the standard and by common practice.

use http::{HeaderMap, StatusCode};

use super::error::{Failure, answered};
use super::fault::fault;
use net::http_client::retry_after;
use sink::{Fault, Reason};

/// The outcome of one message.
#[derive(Debug)]
pub(super) enum Outcome {
    Taken,
    /// The receiver rejects the message, or all messages.
    Rejected(Reason),
    /// The receiver failed on it, and may accept it later.
    NotYet(Reason),
    /// The receiver accepts nothing now.
    Away(Failure),
    /// The status doesn't show which: the message is at fault if the receiver accepts others, or else the receiver.
    Unclear(Failure),
}

impl Outcome {
    /// The meaning of a response.
    pub(super) fn of(status: StatusCode, headers: &HeaderMap, message: String) -> Self {
        let reason = || -> Reason { answered("the receiver", status, &message).into() };
        match status.as_u16() {
            200..=299 => Self::Taken,
            other => match fault(other) {
                Some(Fault::Record | Fault::Unclear) => Self::Rejected(reason()),
                Some(Fault::Passing) => Self::NotYet(reason()),
                Some(Fault::Store) => Self::Away(Failure::Status(status, message, retry_after(headers))),
                // Whether the receiver is down is decided when the others have their responses: there is no pause yet.
                None => Self::Unclear(Failure::Status(status, message, None)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use sink::SinkError;

    use super::*;

    fn of(status: u16) -> Outcome {
        Outcome::of(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), "message".to_owned())
    }

    #[test]
    fn faults_of_message_and_receiver_are_distinguished() {
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
            assert!(error.to_string().contains("message") && !error.to_string().contains("s3cret"), "{error}");
        }
    }
}
