//! The console's page and its files. They hold no data, so they need no token.

use bytes::Bytes;
use console::Asset;
use hyper::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH,
};
use hyper::{HeaderMap, Request, Response, StatusCode};

use super::auth::{AccessSettings, cross_origin};
use super::{AdminBody, AdminResponse, is_read, not_allowed};

/// The address of the page itself, the target of links.
const PAGE: &str = "/";

/// The answer to a request for the page or one of its files; `None` if it asks for something else.
pub(super) fn respond<B>(request: &Request<B>, settings: &AccessSettings) -> Option<Response<AdminBody>> {
    let path = request.uri().path();
    let asset = console::find(path)?;
    let headers = request.headers();
    let browsers = &settings.browsers;
    let checked = browsers.check_host(headers).and_then(|()| match path {
        PAGE => browsers.check_link(headers),
        _ => browsers.check_origin(headers),
    });
    Some(match checked {
        Err(detail) => *cross_origin(detail),
        Ok(()) if !settings.has_console => off().into_response(),
        Ok(()) if !is_read(request.method()) => not_allowed("GET, HEAD").into_response(),
        Ok(()) => of(asset, headers),
    })
}

fn off() -> AdminResponse {
    let text = "not found: the console is disabled. Set `enabled = true` in [console] to enable it. The admin port has /metrics, /healthz, \
                /readyz, /api and /debug\n";
    AdminResponse::text(StatusCode::NOT_FOUND, text)
}

fn of(asset: &'static Asset, headers: &HeaderMap) -> Response<AdminBody> {
    let is_known = lists(headers, &IF_NONE_MATCH)
        .any(|tag| tag == "*" || tag.trim_start_matches("W/") == asset.etag.trim_start_matches("W/"));
    let is_gzip = accepts_gzip(headers);
    let body = match () {
        () if is_known => Bytes::new(),
        () if is_gzip => Bytes::from_static(asset.gzip),
        () => asset.plain().into(),
    };
    let mut response = Response::new(body.into());
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let mut set = |name, value| response.headers_mut().insert(name, HeaderValue::from_static(value));
    set(ETAG, asset.etag);
    // A newer binary has other files: each use asks first.
    set(CACHE_CONTROL, "no-cache");
    if !is_known {
        set(CONTENT_TYPE, asset.content_type);
    }
    if is_gzip && !is_known {
        set(CONTENT_ENCODING, "gzip");
    }
    response
}

/// The parts of a header with lists.
fn lists<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

/// What the header says of gzip itself, else of all codings.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let weight_of = |wanted: &str| {
        lists(headers, &ACCEPT_ENCODING).find_map(|coding| {
            let mut parts = coding.split(';').map(str::trim);
            parts.next().filter(|name| name.eq_ignore_ascii_case(wanted))?;
            let weight = parts
                .find_map(|part| part.strip_prefix(['q', 'Q'])?.trim().strip_prefix('=')?.trim().parse::<f32>().ok());
            Some(weight.unwrap_or(1.0))
        })
    };
    weight_of("gzip").or_else(|| weight_of("*")).is_some_and(|weight| weight > 0.0)
}

#[cfg(test)]
mod tests {
    use hyper::Method;

    use super::*;

    fn answer(
        method: Method,
        path: &str,
        pairs: &[(HeaderName, &str)],
        has_console: bool,
    ) -> Option<Response<AdminBody>> {
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost:9000");
        for (name, value) in pairs {
            request = request.header(name, *value);
        }
        let settings = AccessSettings { browsers: super::super::browser_rules::BrowserRules::default(), has_console };
        respond(&request.body(()).unwrap(), &settings)
    }

    #[test]
    fn page_is_sent_compressed_once() {
        let response = answer(Method::GET, "/", &[(ACCEPT_ENCODING, "br, gzip;q=0.5")], true).unwrap();
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        assert_eq!(
            (response.status(), header(CONTENT_ENCODING), header(CACHE_CONTROL)),
            (StatusCode::OK, "gzip", "no-cache")
        );
        assert_eq!(header(CONTENT_TYPE), "text/html; charset=utf-8");
        let tag = header(ETAG).to_owned();
        for known in [&*tag, "*", &format!("\"x\", {tag}"), tag.trim_start_matches("W/")] {
            let response = answer(Method::GET, "/", &[(IF_NONE_MATCH, known)], true).unwrap();
            assert_eq!(response.status(), StatusCode::NOT_MODIFIED, "{known}");
        }
        for coding in ["", "br", "gzip;q=0", "identity"] {
            let response = answer(Method::GET, "/", &[(ACCEPT_ENCODING, coding)], true).unwrap();
            assert!(response.headers().get(CONTENT_ENCODING).is_none(), "{coding}");
        }
    }

    #[test]
    fn only_reads_of_an_enabled_page_succeed() {
        let status = |method, has_console| answer(method, "/", &[], has_console).unwrap().status();
        assert_eq!(status(Method::HEAD, true), StatusCode::OK);
        assert_eq!(status(Method::POST, true), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(status(Method::GET, false), StatusCode::NOT_FOUND);
        assert!(answer(Method::GET, "/api/status", &[], true).is_none());
        let of_another_page =
            [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")]
                .map(|(name, value)| (HeaderName::from_static(name), value));
        for (path, wanted) in [("/", StatusCode::OK), ("/app.js", StatusCode::FORBIDDEN)] {
            assert_eq!(answer(Method::GET, path, &of_another_page, true).unwrap().status(), wanted, "{path}");
        }
    }
}
