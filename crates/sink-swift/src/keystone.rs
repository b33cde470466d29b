//! Keystone v3: the account is sent as JSON, and the response has the token and a catalogue of endpoints.

use std::time::Duration;

use http::{HeaderValue, Method, Request, header};
use serde_json::{Value, json};
use text::rfc3339;
use tokio::time::Instant;

use super::KeystoneIdentity;
use super::session::Session;
use net::http_client::{Endpoint, HttpClient, full};
use objects::over_http::{ObjectStoreError, expect_success};

const TOKEN: &str = "x-subject-token";
const SERVICE: &str = "object-store";
const INTERFACE: &str = "public";
/// A large cloud's catalogue has a few hundred endpoints.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
const DOING: &str = "issue a token";

pub(super) async fn log_in(
    client: &HttpClient,
    url: &Endpoint,
    identity: &KeystoneIdentity,
    region: Option<&str>,
) -> Result<Session, ObjectStoreError> {
    let mut request = Request::new(full(login_request(identity).to_string()));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = url.url("/auth/tokens")?;
    request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let asked_at = Instant::now();
    let answer = expect_success(client.send(request).await?, || DOING.to_owned()).await?;
    let token = answer.headers().get(TOKEN).cloned().ok_or_else(|| unclear("X-Subject-Token"))?;
    let text = answer.bytes(ANSWER_BYTES_MAX).await?;
    let answered: Value = serde_json::from_slice(&text).map_err(|_| unclear("JSON"))?;
    let storage = storage(&answered["token"], region)?;
    Ok(Session::new(token, storage, asked_at, lifetime(&answered["token"])))
}

fn unclear(missing: &str) -> ObjectStoreError {
    ObjectStoreError::Unclear { doing: DOING.to_owned(), missing: missing.to_owned() }
}

fn login_request(identity: &KeystoneIdentity) -> Value {
    match identity {
        KeystoneIdentity::Password { user, key, project, domain } => {
            let domain = json!({"name": domain});
            let user = json!({"name": user, "domain": domain, "password": key.expose()});
            let scope = json!({"project": {"name": project, "domain": domain}});
            json!({"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}})
        }
        KeystoneIdentity::Application { id, secret } => {
            let credential = json!({"id": id, "secret": secret.expose()});
            json!({"auth": {"identity": {
                "methods": ["application_credential"], "application_credential": credential
            }}})
        }
    }
}

/// The account's URL in the catalogue.
fn storage(token: &Value, region: Option<&str>) -> Result<Endpoint, ObjectStoreError> {
    let services = token["catalog"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of_objects = services.iter().filter(|service| service["type"] == SERVICE);
    let mut endpoints = of_objects.filter_map(|service| service["endpoints"].as_array()).flatten();
    let found = endpoints.find(|endpoint| {
        let is_there = |region: &str| endpoint["region"] == region || endpoint["region_id"] == region;
        endpoint["interface"] == INTERFACE && region.is_none_or(is_there)
    });
    let url = found.and_then(|endpoint| endpoint["url"].as_str()?.parse().ok());
    url.ok_or_else(|| match region {
        Some(region) => unclear(&format!("a public endpoint of an object-store in region {region}")),
        None => unclear("a public endpoint of an object-store"),
    })
}

/// The lifetime by the issuer's own clock.
fn lifetime(token: &Value) -> Option<Duration> {
    let time = |name: &str| rfc3339::parse(token[name].as_str()?).ok();
    let microseconds = time("expires_at")? - time("issued_at")?;
    Some(Duration::from_micros(u64::try_from(microseconds).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_endpoint_of_the_region_is_used() {
        let endpoint = |interface: &str, region: &str, host: &str| {
            let url = format!("http://{host}/v1/AUTH_1");
            json!({"interface": interface, "region": region, "region_id": region, "url": url})
        };
        let compute = json!({"type": "compute", "endpoints": [endpoint("public", "A", "compute")]});
        let objects = [endpoint("internal", "A", "in"), endpoint("public", "A", "a"), endpoint("public", "B", "b")];
        let token = json!({
            "issued_at": "2026-11-21T13:00:00.000000Z", "expires_at": "2026-11-21T14:00:00.000000Z",
            "catalog": [compute, {"type": "object-store", "endpoints": objects}],
        });
        let shown = |region| storage(&token, region).map(|storage| storage.to_string()).ok();
        assert_eq!(shown(None).as_deref(), Some("http://a/v1/AUTH_1"));
        assert_eq!(shown(Some("B")).as_deref(), Some("http://b/v1/AUTH_1"));
        assert_eq!((shown(Some("C")), storage(&json!({}), None).is_err()), (None, true));
        assert_eq!(lifetime(&token), Some(Duration::from_hours(1)));
        assert_eq!(lifetime(&json!({})), None);
    }
}
