//! The service: its containers, and requests with a token.

use std::sync::Arc;

use http::{HeaderName, HeaderValue, Method, Request, StatusCode};
use text::{hex, percent};
use tokio::sync::Mutex;

use net::http_client::{HttpClient, HttpResponse, RequestBody};
use objects::ObjectSink;
use objects::over_http::{ContainerRequest, ObjectStoreError, OverHttp, Service, Source, Use, client};
use sink::Sink;

use crate::config::{Auth, SwiftConfig};
use crate::session::{Session, TOKEN};
use crate::{keystone, tempauth};

const NEWEST: HeaderName = HeaderName::from_static("x-newest");

/// A sink that isn't connected yet. Nothing is requested before the first call.
#[must_use]
pub fn sink(config: SwiftConfig) -> Sink {
    let rules = config.rules.clone();
    Sink::new(ObjectSink::new(OverHttp::new(move |use_of| Swift::new(config.clone(), use_of), rules)))
}

/// The service.
struct Swift {
    config: SwiftConfig,
    client: HttpClient,
    session: Mutex<Option<Arc<Session>>>,
}

impl Swift {
    fn new(config: SwiftConfig, use_of: Use) -> Self {
        let client = client(config.ca.clone(), config.timeout, use_of);
        Self { config, client, session: Mutex::default() }
    }

    /// A valid token, and not the rejected one.
    async fn session(&self, refused: Option<&Arc<Session>>) -> Result<Arc<Session>, ObjectStoreError> {
        let mut held = self.session.lock().await;
        let is_good = |session: &&Arc<Session>| {
            session.is_fresh() && refused.is_none_or(|refused| !Arc::ptr_eq(session, refused))
        };
        if let Some(session) = held.as_ref().filter(is_good) {
            return Ok(session.clone());
        }
        *held = None;
        let session = match &self.config.auth {
            Auth::TempAuth { url, user, key } => tempauth::log_in(&self.client, url, user, key).await,
            Auth::Keystone { url, identity, region } => {
                keystone::log_in(&self.client, url, identity, region.as_deref()).await
            }
        };
        let session = session
            .map_err(|why| ObjectStoreError::NoToken { url: self.config.auth.url().to_string(), why: Box::new(why) })?;
        Ok(held.insert(Arc::new(session)).clone())
    }

    fn request(&self, ask: ContainerRequest<'_>, session: &Session) -> Result<Request<RequestBody>, ObjectStoreError> {
        let container = format!("/{}", percent::encode_path(self.config.container.as_str()));
        let path =
            ask.object.map_or(container.clone(), |object| format!("{container}/{}", percent::encode_path(object)));
        let mut request = Request::new(ask.body.into_client());
        *request.method_mut() = ask.method;
        *request.uri_mut() = session.storage.url(&path)?;
        *request.headers_mut() = ask.headers;
        request.headers_mut().insert(TOKEN, session.token.clone());
        if ask.object.is_some() {
            if request.method() == Method::PUT {
                let digest = HeaderValue::try_from(hex::encode(&ask.digests.md5));
                // With it the server rejects bytes with another digest.
                request.headers_mut().insert(http::header::ETAG, digest.expect("digits are allowed in a header"));
            } else {
                // Not an old version from a server that was down.
                request.headers_mut().insert(NEWEST, HeaderValue::from_static("true"));
            }
        }
        Ok(request)
    }
}

impl Source for Swift {
    fn name(&self) -> String {
        format!("container {} of Swift ({})", self.config.container, self.config.auth.url())
    }

    /// Sends a request. If its token is rejected, it is sent once more with a new token.
    async fn send<'a>(
        &self,
        ask: impl Fn() -> ContainerRequest<'a> + Send + Sync,
    ) -> Result<HttpResponse, ObjectStoreError> {
        let session = self.session(None).await?;
        let answer = self.client.send(self.request(ask(), &session)?).await?;
        if answer.status() != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        drop(answer);
        let session = self.session(Some(&session)).await?;
        Ok(self.client.send(self.request(ask(), &session)?).await?)
    }
}

impl Service for Swift {
    fn lists_apart(&self) -> bool {
        true
    }

    fn create_container(&self) -> ContainerRequest<'static> {
        ContainerRequest::of(Method::PUT, None)
    }
}
