//! The answer to a request that isn't taken: `application/problem+json` (RFC 9457).

use std::borrow::Cow;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use pipeline::batch::BodyError;
use pipeline::json::JsonError;
use serde::Serialize;

use crate::code::Code;

/// Why a request isn't taken, and where in it the reason stands.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    pub(crate) detail: Cow<'static, str>,
    /// The byte at fault, from 0 at the start of the body.
    pub(crate) offset: Option<usize>,
    /// The JSON pointer to the value at fault.
    pub(crate) pointer: Option<String>,
    /// The methods that the path takes, where the request has another.
    pub(crate) allow: Option<&'static str>,
}

/// A refusal travels boxed: it is rare, and a handler's future has room for the largest of its values.
pub(crate) type Refused = Box<Problem>;

const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");
const RETRY_AFTER_SECONDS: &str = "1";

#[derive(Serialize)]
struct Document<'a> {
    r#type: TypeUri,
    title: &'static str,
    status: u16,
    code: Code,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<&'a str>,
}

struct TypeUri(Code);

impl Serialize for TypeUri {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("urn:forebay:problem:{}", self.0.as_str()))
    }
}

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { code, detail: detail.into(), offset: None, pointer: None, allow: None }
    }

    pub(crate) fn boxed(code: Code, detail: impl Into<Cow<'static, str>>) -> Refused {
        Box::new(Self::new(code, detail))
    }

    pub(crate) fn with_pointer(mut self, pointer: &str) -> Self {
        self.pointer = Some(pointer.to_owned());
        self
    }

    pub(crate) fn of_json(error: JsonError) -> Refused {
        let JsonError { offset, kind, detail } = error;
        let code = pipeline::RefusalCode::from(kind).into();
        Box::new(Self { offset: Some(offset), ..Self::new(code, detail) })
    }

    pub(crate) fn of_body(error: BodyError) -> Refused {
        match error {
            BodyError::NotJson(error) => Self::of_json(error),
            other => Self::boxed(other.code().into(), other.to_string()),
        }
    }

    pub(crate) const fn status(&self) -> StatusCode {
        self.code.status()
    }

    fn document(&self) -> Vec<u8> {
        let document = Document {
            r#type: TypeUri(self.code),
            title: self.code.title(),
            status: self.status().as_u16(),
            code: self.code,
            detail: &self.detail,
            offset: self.offset,
            pointer: self.pointer.as_deref(),
        };
        serde_json::to_vec(&document).expect("numbers and texts can be written as JSON")
    }

    fn headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let retry = self.code.is_transient().then_some((RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS)));
        let allow = self.allow.map(|methods| (ALLOW, HeaderValue::from_static(methods)));
        [Some((CONTENT_TYPE, MEDIA_TYPE)), retry, allow].into_iter().flatten()
    }

    pub(crate) fn response(&self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(Bytes::from(self.document())));
        *response.status_mut() = self.status();
        response.headers_mut().extend(self.headers());
        response
    }

    /// The whole answer as bytes, for a connection whose request never reached hyper; it is closed afterwards.
    pub(crate) fn last_words(&self) -> Vec<u8> {
        let status = self.status();
        let body = self.document();
        let mut answer = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in self.headers() {
            answer += &format!("{name}: {}\r\n", value.to_str().unwrap_or_default());
        }
        answer += "\r\n";
        [answer.into_bytes(), body].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_written_with_what_it_has() {
        let problem = Problem { offset: Some(3), ..Problem::new(Code::Json, "a \"b\"") }.with_pointer("/x");
        let expected = r#"{"type":"urn:forebay:problem:json","title":"The payload is no JSON","status":400,"#
            .to_owned()
            + r#""code":"json","detail":"a \"b\"","offset":3,"pointer":"/x"}"#;
        assert_eq!(String::from_utf8(problem.document()).unwrap(), expected);
    }

    #[test]
    fn last_words_are_a_whole_answer() {
        let words = String::from_utf8(Problem::new(Code::Overload, "later").last_words()).unwrap();
        let (head, body) = words.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n"), "{head}");
        assert!(head.contains(&format!("content-length: {}", body.len())) && head.contains("retry-after: 1"), "{head}");
    }
}
