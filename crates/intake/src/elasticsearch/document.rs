//! A request with one document: `_doc` and `_create`.

use crate::{IntakeCall, IntakeRecord, Problem, RecordPayload, RecordVerdict, Records, Reply, Stop, Verdicts};

use super::bulk::{id_error, id_in_index};
use super::bulk_response::reason;
use super::error;
use super::generated_id;
use super::index_name::type_of;
use super::media;

/// A request with one document.
pub(super) struct Document {
    pub(super) media: &'static str,
    pub(super) index: String,
    /// The id of the path.
    pub(super) id: Option<String>,
    /// The id of the response.
    pub(super) shown_id: String,
}

impl IntakeCall for Document {
    fn decode(&mut self, body: &[u8], records: &mut Records<'_>) -> Result<(), Stop> {
        if body.trim_ascii().is_empty() {
            return Err(Problem::empty("the body is empty: send a document").into());
        }
        self.shown_id = self.id.clone().unwrap_or_else(|| format!("{}-0", generated_id::prefix(body)));
        let type_name = type_of(&self.index);
        let id = self.id.as_deref();
        let wrong = type_name.as_ref().err().cloned().map(Into::into).or_else(|| id.and_then(id_error));
        match (type_name, wrong) {
            (Ok(type_name), None) => {
                let payload = RecordPayload::Sent(body);
                let id = id.map(|id| id_in_index(&self.index, id));
                records.take(IntakeRecord { type_name: &type_name, id: id.as_deref(), payload })
            }
            (_, wrong) => {
                let payload = RecordPayload::Rejected { sent: body, detail: wrong.unwrap_or_default() };
                records.take(IntakeRecord { type_name: "", id: None, payload })
            }
        }
    }

    fn kept_bytes(&self) -> usize {
        self.index.len() + 2 * self.shown_id.len()
    }

    fn response(&self, verdicts: &Verdicts) -> Reply {
        let verdict = verdicts.all().first().copied().unwrap_or(RecordVerdict::Accepted);
        let (status, kind) = match verdict {
            RecordVerdict::Accepted => return self.created(),
            RecordVerdict::IdReused => (409, error::CONFLICT),
            RecordVerdict::Rejected => (400, error::DOCUMENT),
        };
        error::reply(status, self.media, kind, &reason(verdict, verdicts.detail(0)))
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        error::refusal(problem, self.media)
    }
}

impl Document {
    /// Typed clients need all of these members.
    fn created(&self) -> Reply {
        let (index, id) = (json::text::string(&self.index), json::text::string(&self.shown_id));
        let shards = r#""_shards":{"total":1,"successful":1,"failed":0}"#;
        let body = format!(
            r#"{{"_index":{index},"_id":{id},"_version":1,"result":"created",{shards},"_seq_no":0,"_primary_term":1}}"#
        );
        media::json(201, self.media, body)
    }
}
