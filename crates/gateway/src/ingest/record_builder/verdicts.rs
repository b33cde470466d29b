//! Records of an intake: their types and ids by the sender's protocol, and what became of each.

use intake::{Detail, IntakeRecord, RecordPayload, RecordVerdict, Verdicts};
use json::batch::Item;
use json::{RecordRejection, RejectionCode};
use limits::EVENT_BYTES_MAX;

use super::RecordBuilder;
use crate::error_code::ErrorCode;
use crate::ingest::pipeline::Workspace;
use crate::problem::{Problem, Refused};

impl RecordBuilder {
    /// From here on it notes what becomes of each record, for an intake.
    pub(crate) fn keep_verdicts(&mut self) {
        self.verdicts = Some(Verdicts::default());
    }

    /// How many records of an intake it has.
    pub(crate) fn taken(&self) -> usize {
        self.verdicts.as_ref().map_or(0, |verdicts| verdicts.all().len())
    }

    /// Whether a record without an id needs the digest of the body.
    pub(crate) const fn lacks_key(&self) -> bool {
        self.key.is_none()
    }

    /// The records without an id are numbered by this digest of the body, from the next one on. Those before have ids.
    pub(crate) fn set_digest(&mut self, digest: &[u8]) {
        self.content.update(digest);
        self.key = Some(digest.into());
        self.has_digest = true;
    }

    /// Processes the next record of an intake.
    pub(crate) fn take_record(&mut self, record: &IntakeRecord<'_>, workspace: &mut Workspace) {
        let Some(verdicts) = &mut self.verdicts else { return };
        verdicts.push(RecordVerdict::Accepted);
        let number = u32::try_from(verdicts.all().len()).unwrap_or(u32::MAX);
        self.take(item(number, record), workspace);
    }

    /// The record at this line is rejected.
    pub(super) fn note_verdict(&mut self, line: u32, problem: &Problem) {
        let Some(verdicts) = &mut self.verdicts else { return };
        let verdict =
            if problem.code == ErrorCode::IdReused { RecordVerdict::IdReused } else { RecordVerdict::Rejected };
        let index = usize::try_from(line).unwrap_or(usize::MAX).saturating_sub(1);
        verdicts.reject(index, verdict, || Detail { code: problem.code.as_str(), detail: problem.detail.clone() });
    }

    /// The problem of the request as a whole, if temporary trouble or the token rejects one of its records. A part of an intake's request is
    /// never stored in that case: most senders can't retry a part.
    pub(crate) fn problem_of_all(&self) -> Option<Refused> {
        let mut codes = ErrorCode::ALL.into_iter().filter(|code| self.refused_by_code[*code as usize] > 0);
        let code = codes.find(|code| code.is_transient() || *code == ErrorCode::Forbidden)?;
        let known = self.refused.iter().find(|refused| refused.code == code);
        let detail = known.map_or("a record of the request can't be accepted now; retry later".into(), |refused| {
            refused.detail().to_owned()
        });
        Some(Problem::boxed(code, detail))
    }
}

fn item<'a>(number: u32, record: &'a IntakeRecord<'a>) -> Item<'a> {
    let rejected = |code, detail| Err(RecordRejection { line: number, pointer: None, code, detail, offset: None });
    let raw = match &record.payload {
        RecordPayload::Sent(bytes) | RecordPayload::Rejected { sent: bytes, .. } => bytes,
        RecordPayload::Made(text) => text.as_bytes(),
    };
    let (checked, raw) = match &record.payload {
        _ if raw.len() > EVENT_BYTES_MAX => {
            let detail = format!("a record has at most {EVENT_BYTES_MAX} bytes: split it, or send less");
            (rejected(RejectionCode::TooLarge, detail.into()), &[][..])
        }
        RecordPayload::Sent(_) => {
            (json::check(raw.trim_ascii()).map_err(|error| RecordRejection::of_json(number, error)), raw)
        }
        RecordPayload::Made(text) => (Ok(text.as_ref()), raw),
        RecordPayload::Rejected { detail, .. } => (rejected(RejectionCode::Record, detail.clone()), raw),
    };
    let type_name = Some(record.type_name).filter(|name| !name.is_empty());
    let id = record.id.filter(|id| !id.is_empty());
    Item { line: number, value: 1, ordinal: number, type_name, id, record: checked, raw }
}
