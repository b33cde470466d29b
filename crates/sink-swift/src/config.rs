//! The configuration of a sink of kind `swift`.

use std::path::PathBuf;
use std::time::Duration;

use net::http_client::Endpoint;
use objects::ObjectFormat;
use objects::over_http::Secret;

use crate::Container;

/// The container, and the account to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwiftConfig {
    /// The authentication.
    pub auth: Auth,
    /// The container. It is created if it is missing.
    pub container: Container,
    /// The limits of objects, and the prefix of their names.
    pub rules: ObjectFormat,
    /// A PEM file with the trusted authorities; without one the machine's.
    pub ca: Option<PathBuf>,
    /// How long a connection may be silent.
    pub timeout: Duration,
}

/// The authentication.
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
        /// The account.
        identity: KeystoneIdentity,
        /// The region of the endpoint; without one the first of the catalogue.
        region: Option<String>,
    },
}

impl Auth {
    /// The URL of the token service.
    #[must_use]
    pub const fn url(&self) -> &Endpoint {
        let (Self::TempAuth { url, .. } | Self::Keystone { url, .. }) = self;
        url
    }

    /// The identity of an account, since containers of different accounts may have one name.
    #[must_use]
    pub fn account(&self) -> String {
        let who = match self {
            Self::TempAuth { user, .. } => user.split(':').next().unwrap_or_default(),
            Self::Keystone { identity: KeystoneIdentity::Password { project, .. }, .. } => project,
            Self::Keystone { identity: KeystoneIdentity::Application { id, .. }, .. } => id,
        };
        format!("{} {who}", self.url())
    }
}

/// The account for Keystone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeystoneIdentity {
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
    /// An application credential, which includes its user and project.
    Application {
        /// Its id.
        id: String,
        /// Its secret.
        secret: Secret,
    },
}
