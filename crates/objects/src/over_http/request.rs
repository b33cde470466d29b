//! A request about a store's container or one of its objects, before it is authenticated.

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};

use super::body::UploadBody;
use super::digests::Digests;

/// A request.
pub struct ContainerRequest<'a> {
    /// The method.
    pub method: Method,
    /// The name of an object; `None` for the container itself.
    pub object: Option<&'a str>,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: UploadBody,
    /// The digests of the body.
    pub digests: Digests,
}

impl<'a> ContainerRequest<'a> {
    /// Without a body.
    #[must_use]
    pub fn of(method: Method, object: Option<&'a str>) -> Self {
        Self { method, object, headers: HeaderMap::new(), body: UploadBody::empty(), digests: Digests::of(b"") }
    }

    /// To store an object.
    #[must_use]
    pub fn put(object: &'a str, body: UploadBody, digests: Digests, content_type: HeaderValue) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, content_type);
        Self { method: Method::PUT, object: Some(object), headers, body, digests }
    }

    /// With this header.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.insert(name, HeaderValue::from_static(value));
        self
    }
}

/// Describes a request, for a message.
pub(super) fn describe_request(method: &Method, object: Option<&str>) -> String {
    let what = object.map_or("the bucket or container".to_owned(), |object| format!("object {object}"));
    let verb = match (method, object) {
        (&Method::PUT, Some(_)) => "store",
        (&Method::PUT, None) => "create",
        (&Method::GET, _) => "read",
        _ => "check",
    };
    format!("{verb} {what}")
}
