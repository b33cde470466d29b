//! Authentication at the writer's port: it admits gateways with a token of the scope `deliver`, and rejects cross-origin requests. A token may be
//! bound to one gateway.

use access::{Scope, ShownToken, is_known_host, is_own_origin};
use event::{Lane, Origin};
use hyper::header::{AUTHORIZATION, HOST, HeaderName, HeaderValue, ORIGIN};
use hyper::{HeaderMap, StatusCode};
use text::OperatorCommand;

use crate::Writer;
use crate::answer::Refused;

/// An admitted request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Admitted {
    /// The only gateway whose lanes it may name, if its token is bound to one.
    origin: Option<Origin>,
}

impl Admitted {
    /// # Errors
    /// The token is bound to another gateway than the lane's.
    pub(super) fn check(self, lane: &Lane) -> Result<(), Refused> {
        match self.origin {
            Some(origin) if origin != lane.origin => {
                let detail = format!(
                    "the token is bound to the gateway {origin}, and this lane is of the gateway {}: create a token for it: {}",
                    lane.origin,
                    OperatorCommand::TokenNewOf(&lane.origin.to_string())
                );
                Err(Refused::new(StatusCode::FORBIDDEN, "origin", detail))
            }
            _ => Ok(()),
        }
    }
}

/// Authenticates a request.
///
/// # Errors
/// Its token isn't valid for the port; or it needs none, and a web page may have sent it.
pub(super) fn admit(writer: &Writer, headers: &HeaderMap, now: i64) -> Result<Admitted, Refused> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let shown = values.next().map(HeaderValue::as_bytes).filter(|_| values.next().is_none());
    let shown = shown.and_then(ShownToken::bearer);
    match writer.tokens.current().check(writer.demand, shown.as_ref(), now) {
        // A page of another host has no token, so a request with a token may name any host.
        Ok(Some(token)) if token.scopes.has(Scope::Deliver) => Ok(Admitted { origin: token.origin }),
        Ok(Some(_)) => Err(Refused::new(
            StatusCode::FORBIDDEN,
            "forbidden",
            "the token lacks the scope `deliver`: create one with forebay token new NAME --scope deliver",
        )),
        Ok(None) => check_page(writer, headers).map(|()| Admitted { origin: None }),
        Err(denied) => Err(Refused::new(StatusCode::UNAUTHORIZED, "unauthorized", denied.to_string())),
    }
}

/// # Errors
/// A web page of another host sent the request, or may have sent it.
fn check_page(writer: &Writer, headers: &HeaderMap) -> Result<(), Refused> {
    let bytes = |name: HeaderName| headers.get(name).map(HeaderValue::as_bytes);
    let host = bytes(HOST);
    // Every browser sends the header Host.
    if writer.is_loopback && host.is_some_and(|host| !is_known_host(host, &[])) {
        let detail = "the header Host must have an IP address or `localhost`: call the writer by its address, or create a token (forebay \
                      token new NAME --scope deliver)";
        return Err(Refused::new(StatusCode::FORBIDDEN, "cross_origin", detail));
    }
    let is_own = |origin: &[u8]| is_own_origin(origin, host.unwrap_or_default(), writer.tls.is_some());
    if bytes(ORIGIN).is_some_and(|origin| !is_own(origin)) {
        let detail = "web pages of other hosts may not use a writer's port: post events to a gateway";
        return Err(Refused::new(StatusCode::FORBIDDEN, "cross_origin", detail));
    }
    Ok(())
}
