//! An intake as it is configured.

use std::net::TcpListener;
use std::sync::Arc;

use event::TypeName;
use intake::Intake;

/// An intake.
#[derive(Clone, Debug)]
pub struct IntakeRule {
    /// Its name in the configuration, and in metrics.
    pub name: Arc<str>,
    /// Its root on the port of the gateway, without a slash at the end: `/es`.
    pub path: Box<str>,
    /// Whether a record without an id gets one from the digest of the body.
    pub dedupes: bool,
    /// The type of records for which the protocol has no name.
    pub type_name: Option<TypeName>,
    /// The protocol.
    pub intake: Arc<dyn Intake>,
}

/// A port of an intake's own. Its root is the intake's.
#[derive(Debug)]
pub struct IntakeListener {
    /// The name of the intake.
    pub intake: Arc<str>,
    /// The socket, which is bound.
    pub listener: TcpListener,
}
