//! `TempAuth`, and other services with the first version of Swift's authentication: user and key are sent as headers,
//! and token and URL are returned as headers.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Request};
use tokio::time::Instant;

use super::session::{Session, TOKEN};
use net::http_client::{Endpoint, HttpClient, HttpResponse, empty};
use objects::over_http::{ObjectStoreError, Secret, drain, expect_success};

const USER: HeaderName = HeaderName::from_static("x-auth-user");
const KEY: HeaderName = HeaderName::from_static("x-auth-key");
const STORAGE_URL: &str = "x-storage-url";
const EXPIRES: &str = "x-auth-token-expires";
const DOING: &str = "issue a token";

pub(super) async fn log_in(
    client: &HttpClient,
    url: &Endpoint,
    user: &str,
    key: &Secret,
) -> Result<Session, ObjectStoreError> {
    let mut request = Request::new(empty());
    *request.uri_mut() = url.url("")?;
    for (name, value) in [(USER, user), (KEY, key.expose())] {
        let mut value = HeaderValue::try_from(value).map_err(|_| ObjectStoreError::Unsendable)?;
        value.set_sensitive(true);
        request.headers_mut().insert(name, value);
    }
    let asked_at = Instant::now();
    let answer = expect_success(client.send(request).await?, || DOING.to_owned()).await?;
    let session = session(&answer, asked_at)?;
    drain(answer).await;
    Ok(session)
}

fn session(answer: &HttpResponse, asked_at: Instant) -> Result<Session, ObjectStoreError> {
    let unclear = |missing: &str| ObjectStoreError::Unclear { doing: DOING.to_owned(), missing: missing.to_owned() };
    let text = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
    let token = answer.headers().get(TOKEN).cloned().ok_or_else(|| unclear("X-Auth-Token"))?;
    let storage = text(STORAGE_URL).and_then(|url| url.parse().ok()).ok_or_else(|| unclear("X-Storage-Url"))?;
    let good_for = text(EXPIRES).and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    Ok(Session::new(token, storage, asked_at, good_for))
}
