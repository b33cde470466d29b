//! A client of one etcd. It tries the members one after the other, and keeps the token of its user.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, StatusCode};
use net::http_client::{Endpoint, HttpClient, HttpOptions, HttpResponse, RequestBody, full};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sink_remote::EtcdConfig;
use tokio::time::timeout;

use super::EtcdError;

/// The timeout of a connection to a member, including TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest wait for one member's complete answer, unless the caller has less time.
pub(super) const CALL_MAX: Duration = Duration::from_secs(4);
/// The longest silence within a watch. Its reader waits for less.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// The largest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// The client, with its own connections.
pub(crate) struct Client {
    config: EtcdConfig,
    http: HttpClient,
    call_max: Duration,
    /// The member that answered last.
    at: usize,
    token: Option<HeaderValue>,
}

#[derive(Deserialize)]
struct Authenticated {
    token: String,
}

impl Client {
    pub(crate) fn new(config: EtcdConfig) -> Self {
        let http = HttpClient::new(HttpOptions {
            ca: config.ca.clone(),
            connect_timeout: CONNECT_TIMEOUT,
            silence_max: SILENCE_MAX,
            waits_for_retry_after: false,
        });
        Self { config, http, call_max: CALL_MAX, at: 0, token: None }
    }

    /// Waits for each member for no longer than this.
    pub(crate) fn within(self, call_max: Duration) -> Self {
        Self { call_max: call_max.min(CALL_MAX), ..self }
    }

    pub(crate) const fn config(&self) -> &EtcdConfig {
        &self.config
    }

    /// Sends a request, and parses the answer.
    ///
    /// # Errors
    /// No member answered, or one rejected the request.
    pub(super) async fn call<T: DeserializeOwned>(&mut self, path: &str, body: &Value) -> Result<T, EtcdError> {
        let is_old = self.token.is_some();
        self.authenticate().await?;
        let body = Bytes::from(body.to_string());
        let answer = match self.ask_any(path, &body).await {
            // A restart of etcd, five idle minutes, or a change of its users or roles invalidates tokens.
            Err(error) if is_old && error.may_be_of_token() => {
                self.token = None;
                self.authenticate().await?;
                self.ask_any(path, &body).await
            }
            answer => answer,
        };
        parse(self.member(), &answer?)
    }

    /// Sends a request with a streamed answer to the member that answered last.
    pub(super) async fn stream(&self, path: &str, body: &Value) -> Result<HttpResponse, EtcdError> {
        let answer = self.http.send(self.request(self.member(), path, &Bytes::from(body.to_string()))?).await?;
        if answer.status() == StatusCode::OK { Ok(answer) } else { Err(EtcdError::NotEtcd(self.member().to_string())) }
    }

    /// The member that answered last.
    pub(super) fn member(&self) -> &Endpoint {
        &self.config.endpoints[self.at]
    }

    /// Gets a token, if there is a user and no token.
    async fn authenticate(&mut self) -> Result<(), EtcdError> {
        let Some(account) = self.config.account.as_ref().filter(|_| self.token.is_none()) else { return Ok(()) };
        let body = json!({ "name": account.user, "password": account.password }).to_string();
        match self.ask_any("/v3/auth/authenticate", &body.into()).await {
            Ok(answer) => {
                let Authenticated { token } = parse(self.member(), &answer)?;
                let mut token =
                    HeaderValue::try_from(token).map_err(|_| EtcdError::NotEtcd(self.member().to_string()))?;
                token.set_sensitive(true);
                self.token = Some(token);
                Ok(())
            }
            Err(error) if error.says_authentication_is_disabled() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Sends a request to each member until one answers or rejects it. It begins with the member that answered last.
    async fn ask_any(&mut self, path: &str, body: &Bytes) -> Result<Bytes, EtcdError> {
        let count = self.config.endpoints.len();
        let mut failures = Vec::new();
        for at in (self.at..self.at + count).map(|at| at % count) {
            let member = &self.config.endpoints[at];
            let answer = timeout(self.call_max, self.ask(member, path, body)).await;
            let answer = answer.unwrap_or_else(|_| {
                Err(EtcdError::NoAnswer(format!("{member}: no complete response within {:?}", self.call_max)))
            });
            match answer {
                Err(error @ (EtcdError::NoAnswer(_) | EtcdError::NotEtcd(_))) => failures.push(error.to_string()),
                answer => {
                    self.at = at;
                    return answer;
                }
            }
        }
        Err(EtcdError::NoAnswer(failures.join("; ")))
    }

    async fn ask(&self, member: &Endpoint, path: &str, body: &Bytes) -> Result<Bytes, EtcdError> {
        let answer = self.http.send(self.request(member, path, body)?).await?;
        let status = answer.status();
        let bytes = answer.bytes(ANSWER_BYTES_MAX).await?;
        if status == StatusCode::OK { Ok(bytes) } else { Err(EtcdError::of_answer(member, status, &bytes)) }
    }

    fn request(&self, member: &Endpoint, path: &str, body: &Bytes) -> Result<Request<RequestBody>, EtcdError> {
        let mut request = Request::builder().method(Method::POST).uri(member.url(path)?);
        request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token);
        }
        request.body(full(body.clone())).map_err(|_| EtcdError::NotEtcd(member.to_string()))
    }
}

fn parse<T: DeserializeOwned>(member: &Endpoint, answer: &[u8]) -> Result<T, EtcdError> {
    serde_json::from_slice(answer).map_err(|_| EtcdError::NotEtcd(member.to_string()))
}
