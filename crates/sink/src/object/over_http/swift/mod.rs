//! OpenStack Swift: a token says who asks, and the answer to who asks for one says where the objects are.

mod keystone;
mod session;
mod tempauth;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, Request, StatusCode};
use tokio::sync::Mutex;

use super::ask::Ask;
use super::escaped::escaped;
use super::failure::Failure;
use super::{Container, Secret, Use, client};
use crate::object::ObjectRules;
use crate::object::description::hexadecimal;
use net::http_client::{Answer, Body, Endpoint, HttpClient};
use session::Session;

const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
const NEWEST: HeaderName = HeaderName::from_static("x-newest");

/// Which container, and who asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwiftConfig {
    /// Who says who asks.
    pub auth: Auth,
    /// The container. It is made if it is missing.
    pub container: Container,
    /// How large objects are, and what their names begin with.
    pub rules: ObjectRules,
    /// A PEM file with the authorities that are trusted; without one those that the machine trusts.
    pub ca: Option<PathBuf>,
    /// How long nothing may come or go.
    pub timeout: Duration,
}

/// Who says who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// Swift's own first version: user and key as headers.
    TempAuth {
        /// The whole URL, as `http://HOST:8080/auth/v1.0`.
        url: Endpoint,
        /// Account and user, as `test:tester`.
        user: String,
        /// The user's key.
        key: Secret,
    },
    /// Keystone's third version.
    Keystone {
        /// The URL that ends with `/v3`.
        url: Endpoint,
        /// Who asks.
        identity: Identity,
        /// The region of the endpoint; without one the first of the catalogue.
        region: Option<String>,
    },
}

impl Auth {
    /// Where to ask for a token.
    #[must_use]
    pub const fn url(&self) -> &Endpoint {
        let (Self::TempAuth { url, .. } | Self::Keystone { url, .. }) = self;
        url
    }

    /// What tells accounts apart that may have containers of one name.
    #[must_use]
    pub fn account(&self) -> String {
        let who = match self {
            Self::TempAuth { user, .. } => user.split(':').next().unwrap_or_default(),
            Self::Keystone { identity: Identity::Password { project, .. }, .. } => project,
            Self::Keystone { identity: Identity::Application { id, .. }, .. } => id,
        };
        format!("{} {who}", self.url())
    }
}

/// Who asks Keystone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A user of a project.
    Password {
        /// The user's name.
        user: String,
        /// The user's password.
        key: Secret,
        /// The project's name.
        project: String,
        /// The name of the domain of both.
        domain: String,
    },
    /// An application credential, which knows its user and project.
    Application {
        /// Its id.
        id: String,
        /// Its secret.
        secret: Secret,
    },
}

/// The service.
pub(super) struct Swift {
    config: SwiftConfig,
    client: HttpClient,
    session: Mutex<Option<Arc<Session>>>,
}

impl Swift {
    pub(super) fn new(config: SwiftConfig, use_of: Use) -> Self {
        let client = client(config.ca.clone(), config.timeout, use_of);
        Self { config, client, session: Mutex::default() }
    }

    pub(super) fn name(&self) -> String {
        format!("container {} of Swift ({})", self.config.container, self.config.auth.url())
    }

    /// Sends what `ask` gives. Where the token isn't taken any more another one is asked for, once.
    pub(super) async fn send<'a>(&self, ask: impl Fn() -> Ask<'a> + Send + Sync) -> Result<Answer, Failure> {
        let session = self.session(None).await?;
        let answer = self.client.send(self.request(ask(), &session)?).await?;
        if answer.status() != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        drop(answer);
        let session = self.session(Some(&session)).await?;
        Ok(self.client.send(self.request(ask(), &session)?).await?)
    }

    /// A token that is good, and not the one that was refused.
    async fn session(&self, refused: Option<&Arc<Session>>) -> Result<Arc<Session>, Failure> {
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
        let session =
            session.map_err(|why| Failure::NoToken { url: self.config.auth.url().to_string(), why: Box::new(why) })?;
        Ok(held.insert(Arc::new(session)).clone())
    }

    fn request(&self, ask: Ask<'_>, session: &Session) -> Result<Request<Body>, Failure> {
        let container = format!("/{}", self.config.container.as_str());
        let path = ask.object.map_or(container.clone(), |object| format!("{container}/{}", escaped(object)));
        let mut request = Request::new(ask.body.into_client());
        *request.method_mut() = ask.method;
        *request.uri_mut() = session.storage.url(&path)?;
        *request.headers_mut() = ask.headers;
        request.headers_mut().insert(TOKEN, session.token.clone());
        if ask.object.is_some() {
            if request.method() == Method::PUT {
                let digest = HeaderValue::try_from(hexadecimal(&ask.digests.md5));
                // Then the server stores nothing whose digest is another one.
                request.headers_mut().insert(http::header::ETAG, digest.expect("digits are letters of a header"));
            } else {
                // Not what a server has that was down meanwhile.
                request.headers_mut().insert(NEWEST, HeaderValue::from_static("true"));
            }
        }
        Ok(request)
    }
}

impl fmt::Debug for Swift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Swift").field("config", &self.config).finish_non_exhaustive()
    }
}
