//! The classes of statuses, as metrics count them.

use http::StatusCode;

/// The first digit of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusClass {
    /// 2xx.
    Success,
    /// 4xx.
    ClientError,
    /// 5xx.
    ServerError,
}

impl StatusClass {
    /// Every class that a gateway answers with.
    pub const ALL: [Self; 3] = [Self::Success, Self::ClientError, Self::ServerError];

    /// The class as a label: `2xx`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "2xx",
            Self::ClientError => "4xx",
            Self::ServerError => "5xx",
        }
    }

    pub(crate) fn of(status: StatusCode) -> Self {
        if status.is_success() {
            Self::Success
        } else if status.is_client_error() {
            Self::ClientError
        } else {
            Self::ServerError
        }
    }
}
