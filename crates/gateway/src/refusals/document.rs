//! The payload of the event as which a rejected event is stored.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use text::{hex, rfc3339};

use super::refused_event::RefusedEvent;
use crate::error_code::ErrorCode;

/// The payload. Without bytes it has no hash either: a short value could be found by trying.
#[derive(Serialize)]
struct Document<'a> {
    r#type: &'a str,
    code: ErrorCode,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    time: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    source: &'a str,
    size: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(flatten)]
    head: Option<Head<'a>>,
}

/// The first bytes of the event.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Head<'a> {
    Text(&'a str),
    /// They aren't UTF-8, or have a character that a store may reject.
    Base64(String),
}

impl<'a> Head<'a> {
    fn of(bytes: &'a [u8], is_cut: bool) -> Self {
        let text = match str::from_utf8(bytes) {
            Ok(text) => Some(text),
            // The cut divides a character.
            Err(error) if is_cut && error.error_len().is_none() => str::from_utf8(&bytes[..error.valid_up_to()]).ok(),
            Err(_) => None,
        };
        match text.filter(|text| !text.contains('\0')) {
            Some(text) => Self::Text(text),
            None => Self::Base64(STANDARD.encode(bytes)),
        }
    }
}

impl RefusedEvent {
    /// The payload. It was received from `source` at `received_at` (microseconds since 1970).
    pub(crate) fn document(&self, source: &str, received_at: i64) -> Vec<u8> {
        let document = Document {
            r#type: self.type_name.as_str(),
            code: self.code,
            status: self.code.status().as_u16(),
            pointer: self.pointer.as_deref(),
            detail: self.detail.as_deref(),
            line: self.line,
            time: rfc3339::format(received_at),
            source,
            size: self.size,
            sha256: self.head.as_ref().map(|_| hex::encode(&self.digest)),
            head: self.head.as_ref().map(|head| Head::of(head, head.len() < self.size)),
        };
        serde_json::to_vec(&document).expect("numbers and texts can be written as JSON")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use event::TypeName;
    use serde_json::{Value, json};

    use super::*;
    use crate::event_types::{GatewayTypes, RefusedTo, TypeRegistry, TypeRules};
    use crate::problem::Problem;
    use crate::refusals::refused_event::{Capture, Rejected};

    fn name(text: &str) -> TypeName {
        TypeName::new(text).unwrap()
    }

    fn captured(refused_to: RefusedTo, code: ErrorCode, bytes: &[u8]) -> Capture {
        let rules = TypeRules { refused_to: Some(Arc::new(refused_to)), ..TypeRules::default() };
        let types = GatewayTypes { named: [(name("orders"), rules)].into(), ..GatewayTypes::default() };
        let problem = Problem::new(code, "the value \"\u{0}\" is too long").with_pointer("/n\u{0}");
        let problem = Problem { type_name: Some(Box::new(name("orders"))), ..problem };
        let types = TypeRegistry::new(types, &Arc::default());
        RefusedEvent::capture(&types, &Rejected { problem: &problem, line: Some(7), bytes, received_at: 1_000_000 })
    }

    fn document(refused_to: RefusedTo, bytes: &[u8]) -> Value {
        let Capture::Event(event) = captured(refused_to, ErrorCode::Schema, bytes) else { panic!("it is stored") };
        serde_json::from_slice(&event.document("shop", 1_000_000)).unwrap()
    }

    #[test]
    fn document_has_the_error_and_first_bytes() {
        let expected = json!({
            "type": "orders", "code": "schema", "status": 422, "pointer": "/n\\u0000",
            "detail": "the value \"\\u0000\" is too long", "line": 7, "time": "1970-01-01T00:00:01.000000Z", "source": "shop",
            "size": 5, "sha256": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", "text": "hello",
        });
        assert_eq!(document(RefusedTo::new(name("refused")), b"hello"), expected);
        let long = document(RefusedTo::new(name("refused")), &[b'x'; 10_000]);
        assert_eq!((&long["size"], long["text"].as_str().unwrap().len()), (&json!(10_000), 4096));
    }

    #[test]
    fn utf8_bytes_are_kept_as_text() {
        let cut = [&[b'x'; 4095], "é".as_bytes(), b"more"].concat();
        for (bytes, text, base64) in [
            ("{\"a\": \"é\n".as_bytes(), Some("{\"a\": \"é\n"), None),
            (b"\xff{", None, Some("/3s=")),
            ("é".as_bytes().split_at(1).0, None, Some("ww==")),
            (b"a\0b", None, Some("YQBi")),
            (b"", Some(""), None),
            (&cut, Some(&*"x".repeat(4095)), None),
        ] {
            let document = document(RefusedTo::new(name("refused")), bytes);
            assert_eq!((document["text"].as_str(), document["base64"].as_str()), (text, base64));
        }
    }

    #[test]
    fn redacted_type_keeps_no_values() {
        let hiding = |secret| RefusedTo::without_bytes(name("refused"), [secret; 32]);
        let expected = json!({
            "type": "orders", "code": "schema", "status": 422, "line": 7, "time": "1970-01-01T00:00:01.000000Z", "source": "shop",
            "size": 5,
        });
        assert_eq!(document(hiding(1), b"hello"), expected);
        let key = |refused_to| match captured(refused_to, ErrorCode::Schema, b"hello") {
            Capture::Event(event) => event.key(),
            other => panic!("{other:?}"),
        };
        assert_eq!(key(hiding(1)), key(hiding(1)));
        assert_ne!(key(hiding(1)), key(hiding(2)), "without the secret the id reveals nothing");
    }

    #[test]
    fn only_faults_of_the_event_are_quarantined() {
        for code in ErrorCode::ALL {
            let is_stored = matches!(captured(RefusedTo::new(name("refused")), code, b"1"), Capture::Event(_));
            assert_eq!(is_stored, [400, 409, 422].contains(&code.status().as_u16()), "{code:?}");
        }
    }
}
