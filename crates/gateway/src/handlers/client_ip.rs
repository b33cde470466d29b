//! `GET /ip`: returns the client's address, as text, JSON, or a call in JavaScript.

use std::net::IpAddr;

use http::StatusCode;

use crate::problem::{Problem, Refused};
use http1::Response;

/// Characters of a function's name.
const CALLBACK_BYTES_MAX: usize = 64;
/// The default of `callback`.
const CALLBACK_DEFAULT: &str = "callback";
/// A browser trusts the content type of the response, and caches nothing.
const LINES: &str = "x-content-type-options: nosniff\r\ncache-control: no-store\r\n";

/// The requested format.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AddressForm {
    Text,
    Json,
    /// A call of this function.
    Call(Box<str>),
}

impl AddressForm {
    /// # Errors
    /// The query is invalid.
    pub(crate) fn of_query(query: Option<&str>) -> Result<Self, Refused> {
        let [mut format, mut callback] = [None, None];
        for (name, value) in query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('=')) {
            let place = match name {
                "format" => &mut format,
                "callback" => &mut callback,
                _ => continue,
            };
            if place.replace(value).is_some() {
                return Err(Problem::of_query("`format` or `callback` is given more than once: send each once"));
            }
        }
        match format {
            None | Some("text") => Ok(Self::Text),
            Some("json") => Ok(Self::Json),
            Some("jsonp") => called(callback.unwrap_or(CALLBACK_DEFAULT)),
            Some(_) => Err(Problem::of_query("invalid `format`: use `text`, `json` or `jsonp`")),
        }
    }

    /// The response to a client at this address.
    pub(crate) fn response(&self, caller: IpAddr) -> Response {
        let (content_type, body) = match self {
            Self::Text => ("text/plain; charset=utf-8", caller.to_string()),
            Self::Json => ("application/json", json(caller)),
            Self::Call(function) => ("text/javascript; charset=utf-8", format!("{function}({});", json(caller))),
        };
        Response { lines: LINES, ..Response::with_body(StatusCode::OK, content_type, body.into()) }
    }
}

fn json(caller: IpAddr) -> String {
    format!(r#"{{"ip":"{caller}"}}"#)
}

/// Only the name of a function may be called: the response runs as a script of the page that requested it.
fn called(function: &str) -> Result<AddressForm, Refused> {
    let is_name = |part: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_$".contains(&byte);
        part.bytes().all(is_allowed) && part.bytes().next().is_some_and(|first| !first.is_ascii_digit())
    };
    if function.len() <= CALLBACK_BYTES_MAX && function.split('.').all(is_name) {
        return Ok(AddressForm::Call(function.into()));
    }
    let detail = format!(
        "invalid `callback`: use the name of a function (A-Z, a-z, 0-9, `_` and `$`, no digit first, parts joined \
         by `.`) of at most {CALLBACK_BYTES_MAX} bytes"
    );
    Err(Problem::of_query(detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_code::ErrorCode;

    #[test]
    fn query_selects_the_format() {
        let call = |name: &str| AddressForm::Call(name.into());
        for (query, form) in [
            (None, AddressForm::Text),
            (Some(""), AddressForm::Text),
            (Some("format=text&callback=%"), AddressForm::Text),
            (Some("format=json"), AddressForm::Json),
            (Some("_=1&format=jsonp"), call("callback")),
            (Some("format=jsonp&callback=$a.b_1"), call("$a.b_1")),
        ] {
            assert_eq!(AddressForm::of_query(query).unwrap(), form, "{query:?}");
        }
        let long = "x".repeat(CALLBACK_BYTES_MAX + 1);
        for callback in ["", "1a", "a.", ".a", "a..b", "a(b", "a%28", "a;b", "a<b", "é", "a b", "a/*", &long] {
            let refused = AddressForm::of_query(Some(&format!("format=jsonp&callback={callback}"))).unwrap_err();
            assert_eq!(refused.code, ErrorCode::BadRequest, "{callback}");
        }
        for query in ["format=xml", "format=", "format=json&format=json", "format=jsonp&callback=a&callback=b"] {
            assert_eq!(AddressForm::of_query(Some(query)).unwrap_err().code, ErrorCode::BadRequest, "{query}");
        }
    }
}
