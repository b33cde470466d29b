//! Rejects cross-origin requests of web pages on a port that needs no token.

use access::{is_known_host, is_own_origin};

use super::cors::Cors;
use crate::error_code::ErrorCode;
use crate::problem::{Problem, Refused};
use http1::Head;

/// The names by which requests without a token may call this server. `None` allows every name: a port that other machines reach has
/// names that only its clients know.
#[derive(Debug)]
pub(crate) struct AllowedHosts(pub(crate) Option<Vec<String>>);

/// How web pages may send a request.
#[derive(Clone, Copy)]
pub(crate) struct PageRules<'a> {
    /// Other origins that may.
    pub(crate) cors: Option<&'a Cors>,
    pub(crate) has_tls: bool,
    /// Whether a token would be checked, which no foreign page has.
    pub(crate) takes_tokens: bool,
}

impl AllowedHosts {
    /// Checks a request without a token.
    ///
    /// # Errors
    /// A page of another origin sent the request, or may have sent it.
    pub(crate) fn check(&self, head: &Head<'_>, from: PageRules<'_>) -> Result<(), Refused> {
        // Every browser sends Host; only clients of HTTP/1.0 don't.
        if let (Some(names), Some(host)) = (&self.0, head.host())
            && !is_known_host(host, names)
        {
            let token = if from.takes_tokens { ", or create a token: forebay token new" } else { "" };
            let detail = format!(
                "the header Host must be an IP address, `localhost` or a name in `allowed_hosts` of [gateway], against \
                 DNS rebinding. Call http://127.0.0.1, or add the name there{token}"
            );
            return Err(Problem::boxed(ErrorCode::CrossOrigin, detail));
        }
        check_origin(head, from)
    }
}

/// Checks a request that a browser may have sent for a page of another origin.
///
/// # Errors
/// It did.
pub(crate) fn check_origin(head: &Head<'_>, from: PageRules<'_>) -> Result<(), Refused> {
    match head.fields.origin {
        Some(origin)
            if !is_own_origin(origin, head.host().unwrap_or_default(), from.has_tls)
                && !from.cors.is_some_and(|cors| cors.allows(origin)) =>
        {
            let token = if from.takes_tokens { ", or let the page send a token" } else { "" };
            let detail = format!(
                "a web page of another origin sent this request: add its origin to `cors_origins` in [gateway]{token}"
            );
            Err(Problem::boxed(ErrorCode::CrossOrigin, detail))
        }
        _ => Ok(()),
    }
}
