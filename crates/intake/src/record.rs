//! The records that a protocol passes to the pipeline.

use std::borrow::Cow;

use limits::BATCH_RECORDS_MAX;

use crate::{Problem, ProblemKind, Stop};

/// One event of a request.
#[derive(Clone, Debug)]
pub struct IntakeRecord<'a> {
    /// The name of its type, as [`type_name`](crate::type_name) writes it; empty if the intake's setting or the rules of types decide.
    pub type_name: &'a str,
    /// The sender's id; an empty one is none. A record of one source and type is stored once for each id.
    pub id: Option<&'a [u8]>,
    /// The event.
    pub payload: RecordPayload<'a>,
}

/// The event of a record.
#[derive(Clone, Debug)]
pub enum RecordPayload<'a> {
    /// Bytes that the sender has written. The pipeline checks that they are JSON.
    Sent(&'a [u8]),
    /// JSON that the protocol's module has written.
    Made(Cow<'a, str>),
    /// It is rejected permanently.
    Rejected {
        /// What was sent, or its beginning. `refused_to` keeps it.
        sent: &'a [u8],
        /// What is wrong, and what to do.
        detail: Cow<'static, str>,
    },
}

/// Receives the records of a request, as many as there is room for.
pub struct Records<'r> {
    skip: usize,
    count: usize,
    room: usize,
    take: &'r mut dyn FnMut(IntakeRecord<'_>),
}

impl<'r> Records<'r> {
    /// Passes records on to `take`, without the first `skip`, which it has; as long as their payloads have no more than `room` bytes.
    pub fn new(skip: usize, room: usize, take: &'r mut dyn FnMut(IntakeRecord<'_>)) -> Self {
        Self { skip, count: 0, room, take }
    }

    /// Passes a record on.
    ///
    /// # Errors
    /// The request has more records than a batch may have; or there is no room for more now.
    pub fn take(&mut self, record: IntakeRecord<'_>) -> Result<(), Stop> {
        if self.count == BATCH_RECORDS_MAX {
            let detail =
                format!("a request has at most {BATCH_RECORDS_MAX} records: send the others as further requests");
            let problem = Problem { kind: ProblemKind::TooLarge, code: "too_many_records", detail: detail.into() };
            return Err(problem.into());
        }
        if self.count >= self.skip {
            if self.room == 0 {
                return Err(Stop::Paused);
            }
            self.room = self.room.saturating_sub(record.payload.bytes());
            (self.take)(record);
        }
        self.count += 1;
        Ok(())
    }

    /// Whether the next record was passed on before: [`Records::take`] only counts it, so its payload may be anything.
    #[must_use]
    pub const fn skips_next(&self) -> bool {
        self.count < self.skip
    }

    /// How many records were passed on, with those that were skipped.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }
}

impl RecordPayload<'_> {
    fn bytes(&self) -> usize {
        match self {
            Self::Sent(bytes) | Self::Rejected { sent: bytes, .. } => bytes.len(),
            Self::Made(text) => text.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(payload: &'static str) -> IntakeRecord<'static> {
        IntakeRecord { type_name: "a", id: None, payload: RecordPayload::Made(payload.into()) }
    }

    #[test]
    fn records_pause_and_continue() {
        let decode = |skip, room| {
            let mut taken = Vec::new();
            let mut take = |record: IntakeRecord<'_>| match record.payload {
                RecordPayload::Made(text) => taken.push(text.into_owned()),
                _ => unreachable!(),
            };
            let mut records = Records::new(skip, room, &mut take);
            let outcome = ["1", "22", "333"].into_iter().try_for_each(|text| records.take(record(text)));
            (taken, outcome)
        };
        assert_eq!(decode(0, 2), (vec!["1".into(), "22".into()], Err(Stop::Paused)));
        assert_eq!(decode(2, 1), (vec!["333".into()], Ok(())));
    }

    #[test]
    fn too_many_records_are_rejected() {
        let mut take = |_: IntakeRecord<'_>| ();
        let mut records = Records::new(0, usize::MAX, &mut take);
        assert!((0..BATCH_RECORDS_MAX).all(|_| records.take(record("1")).is_ok()));
        let Err(Stop::Rejected(problem)) = records.take(record("1")) else { panic!("accepted") };
        assert_eq!((problem.status(), problem.code), (413, "too_many_records"));
    }
}
