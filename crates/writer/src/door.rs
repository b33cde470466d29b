//! Who may hand in batches: gateways that show a token with the scope `deliver`, and no web page.

use access::Scope;
use hyper::header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN};
use hyper::{HeaderMap, StatusCode};

use crate::Writer;
use crate::answer::Refused;

/// Why a request isn't let in.
pub(super) fn check(writer: &Writer, headers: &HeaderMap, now: i64) -> Result<(), Refused> {
    if headers.contains_key(ORIGIN) {
        return Err(Refused::new(StatusCode::FORBIDDEN, "page", "web pages may not use a writer's port"));
    }
    if writer.is_loopback && !is_own_name(headers.get(HOST)) {
        let detail = "the header Host must have an IP address or localhost: names of others may lead here too";
        return Err(Refused::new(StatusCode::FORBIDDEN, "page", detail));
    }
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let shown = values.next().map(HeaderValue::as_bytes).filter(|_| values.next().is_none());
    match writer.tokens.current().check(writer.demand, shown, now) {
        Ok(None) => Ok(()),
        Ok(Some(token)) if token.scopes.has(Scope::Deliver) => Ok(()),
        Ok(Some(_)) => Err(Refused::new(StatusCode::FORBIDDEN, "forbidden", "the token lacks the scope `deliver`")),
        Err(denied) => Err(Refused::new(StatusCode::UNAUTHORIZED, "unauthorized", denied.to_string())),
    }
}

fn is_own_name(host: Option<&HeaderValue>) -> bool {
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
    let without_port = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let name = without_port.map_or(host, |(name, _)| name);
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || bare.parse::<std::net::IpAddr>().is_ok()
}
