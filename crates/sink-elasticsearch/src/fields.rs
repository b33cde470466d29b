//! The fields by which events can be found in the existing indices: these follow from their mappings.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::error::Failure;

/// The members of an envelope that events are found by.
const ID: &str = "id";
const TYPE: &str = "type";
const RECEIVED_AT: &str = "received_at";
/// The suffix of the field that stores add by default to a text.
const WHOLE_TEXT: &str = ".keyword";

const TEXTS: &[&str] = &["keyword"];
/// Not `date_nanos`: OpenSearch omits events when it sorts several indices by it, since its shards exchange the end of
/// a page only in milliseconds.
const TIMES: &[&str] = &["date", "keyword"];

/// The fields in the request.
pub(super) const WANTED: &str = "id,id.keyword,type,type.keyword,received_at,received_at.keyword";

/// The fields' names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) id: String,
    pub(super) type_name: String,
    pub(super) received_at: String,
}

/// The store's response: the types of each field in the indices.
#[derive(Deserialize)]
struct Answer {
    indices: Vec<String>,
    fields: BTreeMap<String, BTreeMap<String, Capability>>,
}

#[derive(Deserialize)]
struct Capability {
    searchable: bool,
    aggregatable: bool,
}

impl Fields {
    /// Parses a response to `_field_caps`; `None` if there are no indices.
    ///
    /// # Errors
    /// Events can't be found in these indices.
    pub(super) fn read(answer: &[u8]) -> Result<Option<Self>, Failure> {
        let answer: Answer = serde_json::from_slice(answer).map_err(|error| {
            Failure::Unexpected(format!(
                "its response to _field_caps is invalid ({error}): check the proxies in front of it"
            ))
        })?;
        if answer.indices.is_empty() {
            return Ok(None);
        }
        let field = |name: &str, kinds: &[&str]| answer.field(name, kinds).ok_or_else(|| misfit(name));
        let (id, type_name, received_at) = (field(ID, TEXTS)?, field(TYPE, TEXTS)?, field(RECEIVED_AT, TIMES)?);
        Ok(Some(Self { id, type_name, received_at }))
    }
}

impl Answer {
    /// The field itself or its subfield, whichever has one of the types, and the same type in all indices that have it.
    fn field(&self, name: &str, kinds: &[&str]) -> Option<String> {
        let only_kind = |name: &str| self.fields.get(name).filter(|found| found.len() == 1)?.first_key_value();
        let is_good = |name: &String| {
            only_kind(name)
                .is_some_and(|(kind, can)| kinds.contains(&kind.as_str()) && can.searchable && can.aggregatable)
        };
        // If its type differs between indices, the subfield isn't in all of them.
        only_kind(name)?;
        [name.to_owned(), format!("{name}{WHOLE_TEXT}")].into_iter().find(is_good)
    }
}

fn misfit(name: &str) -> Failure {
    let kinds = if name == RECEIVED_AT { "`keyword` or `date`" } else { "`keyword`" };
    Failure::Misfit(format!(
        "events can't be found by `{name}`, which isn't mapped as {kinds} in all indices: give them a template with \
         the mapping in docs/guides/stores/elasticsearch.md"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(id: &str, received_at: &str) -> Result<Option<Fields>, Failure> {
        let caps = r#""searchable": true, "aggregatable": true"#;
        let text = format!(
            r#"{{"indices": ["a", "b"], "fields": {{"id": {{{id}}}, "id.keyword": {{"keyword": {{{caps}}}}},
               "type": {{"keyword": {{{caps}}}}}, "received_at": {{"{received_at}": {{"type": "x", {caps}}}}}}}}}"#
        );
        Fields::read(text.as_bytes())
    }

    #[test]
    fn fields_are_sortable_in_all_indices() {
        let keyword = r#""keyword": {"searchable": true, "aggregatable": true}"#;
        let text = r#""text": {"searchable": true, "aggregatable": false}"#;
        let id = |id: &str| read(id, "date").unwrap().unwrap().id;
        assert_eq!(id(keyword), "id");
        assert_eq!(id(text), "id.keyword");
        assert_eq!(id(r#""keyword": {"searchable": false, "aggregatable": true}"#), "id.keyword");
        assert!(read(&format!("{keyword}, {text}"), "date").is_err(), "its type differs between indices");
        assert!(read(keyword, "keyword").is_ok());
        for kind in ["long", "date_nanos"] {
            let Err(Failure::Misfit(words)) = read(keyword, kind) else { panic!("{kind} isn't a sortable time here") };
            assert!(words.contains("`received_at`") && words.contains("`date`"), "{words}");
        }
    }

    #[test]
    fn without_indices_there_are_no_events() {
        assert_eq!(Fields::read(br#"{"indices": [], "fields": {}}"#).unwrap(), None);
        assert!(matches!(Fields::read(br#"{"indices": ["a"], "fields": {}}"#), Err(Failure::Misfit(_))));
        assert!(matches!(Fields::read(b"{}"), Err(Failure::Unexpected(_))));
    }
}
