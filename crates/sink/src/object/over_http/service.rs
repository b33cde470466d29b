//! The services side by side: how each is told who asks, and where its objects are.

use super::ask::Ask;
use super::failure::Failure;
use net::http_client::Answer;

/// A service.
pub(super) enum Service {
    Swift(super::swift::Swift),
    S3(super::s3::S3),
}

impl Service {
    /// Sends what `ask` gives, which may be asked for twice.
    pub(super) async fn send<'a>(&self, ask: impl Fn() -> Ask<'a> + Send + Sync) -> Result<Answer, Failure> {
        match self {
            Self::Swift(swift) => swift.send(ask).await,
            Self::S3(s3) => s3.send(ask()).await,
        }
    }

    /// Whether its list of objects is kept apart from them: a server that is killed between the two has an object that no list names.
    pub(super) const fn lists_apart(&self) -> bool {
        match self {
            Self::Swift(_) => true,
            Self::S3(_) => false,
        }
    }

    /// To make what objects are kept in.
    pub(super) fn make_container(&self) -> Ask<'static> {
        match self {
            Self::Swift(_) => Ask::of(http::Method::PUT, None),
            Self::S3(s3) => s3.make_bucket(),
        }
    }

    /// The store and what it keeps objects in, for messages.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Swift(swift) => swift.name(),
            Self::S3(s3) => s3.name(),
        }
    }
}
