//! TLS on the two ports.

use std::sync::Arc;

use config::Configuration;
use config::port::tls_files::TlsFilesError;
use net::tls::ServerTls;

use crate::tls::watch::{Read, TlsWatch};

/// The certificates of the ports that use TLS.
pub(crate) struct PortsTls {
    intake: Option<Arc<TlsWatch>>,
    admin: Option<Arc<TlsWatch>>,
}

/// The certificates that a configuration names.
pub(crate) struct NextTls {
    intake: Option<Read>,
    admin: Option<Read>,
}

impl PortsTls {
    /// Reads the files that a configuration names.
    ///
    /// # Errors
    /// They can't be used.
    pub(crate) fn start(configuration: &Configuration) -> Result<Self, TlsFilesError> {
        let start = |files: &Option<_>| files.clone().map(TlsWatch::start).transpose();
        let (intake, admin) = (start(&configuration.gateway.tls)?, start(&configuration.admin.tls)?);
        Ok(Self { intake: intake.map(Arc::new), admin: admin.map(Arc::new) })
    }

    /// The certificate of the intake port.
    pub(crate) fn intake(&self) -> Option<Arc<ServerTls>> {
        self.intake.as_ref().map(|watch| watch.tls().clone())
    }

    /// The certificate of the admin port.
    pub(crate) fn admin(&self) -> Option<Arc<ServerTls>> {
        self.admin.as_ref().map(|watch| watch.tls().clone())
    }

    /// Follows the files for as long as the runtime runs.
    pub(crate) fn follow(&self) {
        [&self.intake, &self.admin].into_iter().flatten().for_each(|watch| {
            tokio::spawn(watch.clone().follow());
        });
    }

    /// Reads the files that another configuration names; nothing changes yet.
    ///
    /// # Errors
    /// They can't be used.
    pub(crate) fn read(configuration: &Configuration) -> Result<NextTls, TlsFilesError> {
        let read = |files: &Option<_>| files.clone().map(Read::of).transpose();
        Ok(NextTls { intake: read(&configuration.gateway.tls)?, admin: read(&configuration.admin.tls)? })
    }

    /// Applies the certificates that were read. Whether a port uses TLS at all changes only with a restart.
    pub(crate) fn show(&self, next: NextTls) {
        for (watch, read) in [(&self.intake, next.intake), (&self.admin, next.admin)] {
            if let (Some(watch), Some(read)) = (watch, read) {
                watch.show(read);
            }
        }
    }
}
