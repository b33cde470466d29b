//! A request with events.

use limits::EVENT_BYTES_MAX;

use super::event::{Defaults, Fault, Members};
use super::{raw, replies, values};
use crate::budget::Budget;
use crate::{IntakeCall, IntakeRecord, Problem, ProblemKind, RecordPayload, Records, Reply, Stop, Verdicts};

/// How a body has its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As JSON.
    Events,
    /// As lines of text.
    Raw,
}

/// A request with events.
#[derive(Debug)]
pub(super) struct Events {
    form: Form,
    defaults: Defaults,
    ack: Option<u64>,
    /// The body has no events.
    is_empty: bool,
    /// The first event that isn't as Splunk describes it, and Splunk's number of the reason.
    first_fault: Option<(usize, u8)>,
    /// How many events are before the fault for which the body as a whole is rejected.
    fault_after: Option<usize>,
}

impl Events {
    pub(super) const fn new(form: Form, defaults: Defaults, ack: Option<u64>) -> Self {
        Self { form, defaults, ack, is_empty: false, first_fault: None, fault_after: None }
    }
}

impl IntakeCall for Events {
    fn needed_bytes(&self, body: &[u8]) -> usize {
        match self.form {
            Form::Events => 2 * body.len().min(EVENT_BYTES_MAX) + 2 * self.defaults.bytes(),
            // A line as a string, which may have six times its bytes, and as it is stored.
            Form::Raw => 4 * (6 * body.len()).min(EVENT_BYTES_MAX) + 2 * self.defaults.bytes(),
        }
    }

    /// Events without a time can be equal, and still be different ones.
    fn is_repeatable(&self, body: &[u8]) -> bool {
        let mut have_times = self.form == Form::Events;
        let mut look = |value: &str| {
            have_times &= Members::of(value, &self.defaults).is_ok_and(|members| members.has_time());
            Ok(())
        };
        values::walk(body, &mut look).is_ok() && have_times
    }

    fn decode(&mut self, body: &[u8], records: &mut Records<'_>) -> Result<(), Stop> {
        let (mut first_fault, mut made, mut budget) = (None, String::new(), Budget::new());
        let mut take = |written: &[u8], members: Result<Members<'_>, Fault>| {
            let (number, sent) = (records.count(), RecordPayload::Sent(written));
            made.clear();
            let outcome = members.and_then(|members| Ok((members.type_name()?, members)));
            let (type_name, payload) = match outcome {
                // It is rejected for its size.
                Ok((type_name, _)) if written.len() > EVENT_BYTES_MAX => (type_name, Ok(sent)),
                Ok((type_name, members)) => {
                    let payload = members.write(&mut made);
                    (type_name, payload.map(|()| RecordPayload::Sent(made.as_bytes())))
                }
                Err(fault) => ("".into(), Err(fault)),
            };
            let payload = payload.unwrap_or_else(|fault| {
                first_fault = first_fault.or(Some((number, fault.code)));
                let detail = if fault.detail.is_empty() { "`event` is missing: send it".into() } else { fault.detail };
                RecordPayload::Rejected { sent: written, detail }
            });
            budget.spend(written.len() + self.defaults.bytes())?;
            records.take(IntakeRecord { type_name: &type_name, id: None, payload })
        };
        let outcome = match self.form {
            Form::Events => values::walk(body, &mut |value| take(value.as_bytes(), Members::of(value, &self.defaults))),
            Form::Raw => raw::walk(body, &mut |line| match line {
                Ok(line) => take(line.as_bytes(), Ok(Members::of_line(line, &self.defaults))),
                Err(line) => take(line, Err(Fault::of_large_line())),
            }),
        };
        self.first_fault = first_fault;
        self.is_empty = matches!(outcome, Ok(())) && records.count() == 0;
        match outcome {
            Ok(()) if self.is_empty => Err(Problem::empty("the body has no events: send one").into()),
            Ok(()) => Ok(()),
            Err(stop) => {
                self.fault_after =
                    matches!(&stop, Stop::Rejected(problem) if problem.code == "json").then_some(records.count());
                Err(stop)
            }
        }
    }

    fn is_atomic(&self) -> bool {
        true
    }

    fn response(&self, verdicts: &Verdicts) -> Reply {
        let Some((number, detail)) = verdicts.first_rejected() else { return replies::success(self.ack) };
        match self.first_fault {
            Some((fault, code)) if fault == number && code != 6 => replies::rejected(code, "", number),
            _ => replies::rejected(6, detail.map(|detail| &*detail.detail).unwrap_or_default(), number),
        }
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        if self.is_empty && problem.kind == ProblemKind::Invalid {
            return replies::refusal(&Problem { kind: ProblemKind::Empty, ..problem.clone() }, None);
        }
        replies::refusal(problem, self.fault_after)
    }
}
