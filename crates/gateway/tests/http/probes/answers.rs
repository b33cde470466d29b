//! All answers that a connection gives until it is closed.

use std::io::ErrorKind;

use crate::fixture::Client;

/// What came over a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answers {
    /// Of the final answers, in order: `100 Continue` is none (RFC 9110 §15.2).
    pub(super) statuses: Vec<u16>,
    /// The last one says that nothing follows.
    pub(super) says_that_it_closes: bool,
}

impl Answers {
    /// Reads until the server closes; fails if it doesn't, or if it sends an invalid response.
    pub(super) fn read(client: &mut Client) -> Self {
        let mut answers = Self { statuses: Vec::new(), says_that_it_closes: false };
        loop {
            match client.try_answer() {
                Ok(answer) if answer.status == 100 => {}
                Ok(answer) => {
                    answers.statuses.push(answer.status);
                    answers.says_that_it_closes = answer.header("connection") == Some("close");
                }
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return answers,
                Err(error) => panic!("{error} behind {answers:?}"),
            }
        }
    }
}
