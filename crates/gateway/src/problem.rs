//! Why a request is rejected, as `application/problem+json` (RFC 9457) says it.

use std::borrow::Cow;

use access::TypePatterns;
use event::TypeName;
use eventlog::AppendError;
use http::StatusCode;
use http1::{RequestError, RequestErrorKind};
use json::JsonError;
use json::JsonPointer;
use json::batch::BatchError;
use json::store_compat::Incompatibility;
use schema::{Violation, Violations};
use serde::Serialize;
use transform::StepError;

use crate::error_code::ErrorCode;

/// Why a request is rejected, and where in it the reason is.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) code: ErrorCode,
    pub(crate) detail: Cow<'static, str>,
    /// The title, if the code has several meanings.
    pub(crate) title: Option<&'static str>,
    /// The byte at fault, from 0 at the start of the body.
    pub(crate) offset: Option<usize>,
    /// The JSON pointer to the value at fault.
    pub(crate) pointer: Option<Box<str>>,
    /// The violations of a schema. Boxed, like the type, because results carry problems by value.
    pub(crate) violations: Option<Box<Violations>>,
    /// The step that fails on the payload, if one does.
    pub(crate) step: Option<Box<FailedStep>>,
    /// The type of the rejected event, if it is known.
    pub(crate) type_name: Option<Box<TypeName>>,
    /// The methods that the path accepts, if the request has another.
    pub(crate) allow: Option<&'static str>,
}

/// A step of a type's transform.
#[derive(Debug, Serialize)]
pub(crate) struct FailedStep {
    /// From 1.
    pub(crate) step: usize,
    operation: &'static str,
}

const SECOND_VALUE: &str =
    "the body has more than one JSON value, but this path accepts one: send several to /ingest/batch";

/// Boxed, because it is rare, and a handler's future has room for the largest of its values.
pub(crate) type Refused = Box<Problem>;

#[derive(Serialize)]
pub(crate) struct Document<'a> {
    r#type: TypeUri,
    title: &'static str,
    status: u16,
    code: ErrorCode,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [Violation],
    #[serde(flatten)]
    step: Option<&'a FailedStep>,
}

/// A problem with members of its kind (RFC 9457 §3.2).
#[derive(Serialize)]
struct Extended<'a, T> {
    #[serde(flatten)]
    problem: Document<'a>,
    #[serde(flatten)]
    members: &'a T,
}

fn written(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).expect("numbers and texts can be written as JSON")
}

struct TypeUri(ErrorCode);

impl Serialize for TypeUri {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("urn:forebay:problem:{}", self.0.as_str()))
    }
}

/// A detail may quote what a client sent. A token in it would be in the response, in the log, and in what `refused_to` stores.
fn without_tokens(detail: Cow<'static, str>) -> Cow<'static, str> {
    match detail {
        Cow::Owned(detail) if access::contains_token(&detail) => String::from(access::hide_tokens(&detail)).into(),
        detail => detail,
    }
}

impl From<AppendError> for Refused {
    fn from(error: AppendError) -> Self {
        let code = match error {
            AppendError::Busy => ErrorCode::Overload,
            AppendError::NoSpace => ErrorCode::DiskFull,
            AppendError::Failed => ErrorCode::JournalFailed,
        };
        Problem::boxed(code, error.to_string())
    }
}

impl From<Box<RequestError>> for Refused {
    fn from(error: Box<RequestError>) -> Self {
        let RequestError { kind, title, detail } = *error;
        let code = match kind {
            RequestErrorKind::BadRequest => ErrorCode::BadRequest,
            RequestErrorKind::BodyIncomplete => ErrorCode::BodyIncomplete,
            RequestErrorKind::Encoding => ErrorCode::Encoding,
            RequestErrorKind::Expectation => ErrorCode::Expectation,
            RequestErrorKind::HeaderTooLarge => ErrorCode::HeaderTooLarge,
            RequestErrorKind::TargetTooLong => ErrorCode::TargetTooLong,
            RequestErrorKind::Timeout => ErrorCode::Timeout,
            RequestErrorKind::TooLarge => ErrorCode::TooLarge,
        };
        Box::new(Problem { title, ..Problem::new(code, detail) })
    }
}

impl Problem {
    pub(crate) fn new(code: ErrorCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            detail: without_tokens(detail.into()),
            title: None,
            offset: None,
            pointer: None,
            violations: None,
            step: None,
            type_name: None,
            allow: None,
        }
    }

    pub(crate) fn boxed(code: ErrorCode, detail: impl Into<Cow<'static, str>>) -> Refused {
        Box::new(Self::new(code, detail))
    }

    /// A request that is valid HTTP but can't be processed.
    pub(crate) fn bad(title: &'static str, detail: impl Into<Cow<'static, str>>) -> Refused {
        Box::new(Self { title: Some(title), ..Self::new(ErrorCode::BadRequest, detail) })
    }

    /// A query that has no answer, regardless of what is stored.
    pub(crate) fn of_query(detail: impl Into<Cow<'static, str>>) -> Refused {
        Self::bad("Invalid query", detail)
    }

    /// One of Forebay's headers has an invalid value.
    pub(crate) fn of_header(detail: impl Into<Cow<'static, str>>) -> Refused {
        Self::bad("Invalid header value", detail)
    }

    pub(crate) fn with_pointer(mut self, pointer: &str) -> Self {
        self.pointer = Some(access::hide_tokens(pointer).into());
        self
    }

    pub(crate) fn of_type(mut self, name: &TypeName) -> Self {
        self.type_name = Some(Box::new(name.clone()));
        self
    }

    /// A reload changes the rules of the event, or has done so since its request began. No event may follow the rules of one configuration and
    /// the routes of the other.
    pub(crate) fn changing() -> Self {
        let detail = "the configuration of this event type is being reloaded; retry after Retry-After";
        Self { title: Some("Configuration reload in progress"), ..Self::new(ErrorCode::NotReady, detail) }
    }

    /// An id can't be used for two events.
    pub(crate) fn id_reused() -> Self {
        Self::new(
            ErrorCode::IdReused,
            "this Idempotency-Key (or payload id) was already used for a different payload; use a new one",
        )
    }

    /// The request's token is limited to other types.
    pub(crate) fn of_token_types(types: &TypePatterns, name: &TypeName) -> Self {
        let detail = format!("the token may post only the types {types}, but not {name}: use another token");
        Self::new(ErrorCode::Forbidden, detail)
    }

    /// The body of a single event isn't one JSON value.
    pub(crate) fn of_event(body: &[u8], error: JsonError) -> Refused {
        if error.is_second_value(body) {
            let error = JsonError { detail: SECOND_VALUE.into(), ..error };
            return Self::of_json(error);
        }
        Self::of_json(error)
    }

    pub(crate) fn of_json(error: JsonError) -> Refused {
        let JsonError { offset, kind, detail } = error;
        let code = json::RejectionCode::from(kind).into();
        Box::new(Self { offset: Some(offset), ..Self::new(code, detail) })
    }

    /// A record of a batch is invalid.
    pub(crate) fn of_refusal(refusal: json::RecordRejection) -> Self {
        let json::RecordRejection { pointer, offset, code, detail, .. } = refusal;
        Self { offset, pointer: pointer.map(Into::into), ..Self::new(code.into(), detail) }
    }

    /// A payload violates the schema of its type: the detail describes the first error, and all of them are listed.
    pub(crate) fn of_schema(type_name: &TypeName, violations: Violations) -> Self {
        let Violations { list, is_cut } = &violations;
        let (first, pointer) =
            list.first().map_or_else(Default::default, |first| (first.to_string(), first.pointer.clone()));
        let more = match (list.len().saturating_sub(1), *is_cut) {
            (0, _) => String::new(),
            (more, false) => format!("; {more} more"),
            (more, true) => format!("; at least {more} more"),
        };
        let detail = format!("the schema of type {type_name}: {first}{more}");
        let pointer = Some(pointer.into());
        Self { pointer, violations: Some(Box::new(violations)), ..Self::new(ErrorCode::Schema, detail) }
    }

    /// The violations of a schema, up to a limit.
    pub(crate) fn violations(&self) -> &[Violation] {
        self.violations.as_deref().map_or(&[], |violations| &violations.list)
    }

    /// A step of its type's transform fails on a payload, and its `on_error` doesn't let the event continue.
    pub(crate) fn of_step(error: StepError) -> Refused {
        let problem = Self::new(ErrorCode::Transform, error.to_string());
        let StepError { step, operation, pointer, .. } = error;
        let pointer = pointer.map(Into::into);
        Box::new(Self { pointer, step: Some(Box::new(FailedStep { step, operation })), ..problem })
    }

    /// A payload has a value that not every store can hold.
    pub(crate) fn of_flaw(type_name: &TypeName, flaw: Incompatibility) -> Self {
        let detail = format!(
            "the payload has {flaw}, which type {type_name} does not accept: remove it, or set \
             unstorable = \"repair\" for the type"
        );
        let Incompatibility { offset, pointer, .. } = flaw;
        Self { offset: Some(offset), pointer: Some(pointer.into()), ..Self::new(ErrorCode::Unstorable, detail) }
    }

    /// The time of an event cannot be read.
    pub(crate) fn of_time(pointer: &JsonPointer, reason: &str) -> Self {
        let detail = format!("invalid event time: {reason}");
        Self::new(ErrorCode::Time, detail).with_pointer(pointer.as_str())
    }

    pub(crate) fn of_body(error: BatchError) -> Refused {
        match error {
            BatchError::NotJson(error) => {
                let detail = format!("the body is not a JSON array: {}", error.detail);
                Self::of_json(JsonError { detail: detail.into(), ..error })
            }
            BatchError::OtherFormat(error) => Self::of_json(error),
            other => Self::boxed(other.code().into(), other.to_string()),
        }
    }

    pub(crate) const fn status(&self) -> StatusCode {
        self.code.status()
    }

    pub(crate) fn document(&self) -> Document<'_> {
        Document {
            r#type: TypeUri(self.code),
            title: self.title.unwrap_or_else(|| self.code.title()),
            status: self.status().as_u16(),
            code: self.code,
            detail: &self.detail,
            offset: self.offset,
            pointer: self.pointer.as_deref(),
            errors: self.violations(),
            step: self.step.as_deref(),
        }
    }

    /// The document of `application/problem+json` (RFC 9457).
    pub(crate) fn json(&self) -> Vec<u8> {
        written(&self.document())
    }

    /// The same with additional members.
    pub(crate) fn json_with(&self, members: &impl Serialize) -> Vec<u8> {
        written(&Extended { problem: self.document(), members })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problem_document_has_only_set_members() {
        let problem = Problem { offset: Some(3), ..Problem::new(ErrorCode::Json, "a \"b\"") }.with_pointer("/x");
        let expected = r#"{"type":"urn:forebay:problem:json","title":"Invalid JSON","status":400,"#.to_owned()
            + r#""code":"json","detail":"a \"b\"","offset":3,"pointer":"/x"}"#;
        assert_eq!(String::from_utf8(problem.json()).unwrap(), expected);
    }
}
