//! Follows a port's certificate and key while the server runs: a new pair is shown within a second, to those who
//! connect from then on.

use std::sync::{Arc, Mutex, PoisonError};

use config::port::tls_files::{TlsFiles, TlsFilesError};
use net::tls::{Identity, ServerTls};

use crate::file_stamp::{self, Stamp};

/// A port's files, and the certificate in use. The port and a reload share it.
pub(crate) struct TlsWatch {
    tls: Arc<ServerTls>,
    state: Mutex<State>,
}

struct State {
    files: TlsFiles,
    /// The stamps of the files when the pair in use was read.
    seen: [Stamp; 2],
    /// The last thing that was warned of: once is enough.
    warned: Option<String>,
}

fn stamps(files: &TlsFiles) -> [Stamp; 2] {
    [Stamp::of(&files.certificate), Stamp::of(&files.key)]
}

/// Files that were read, and their content.
pub(crate) struct Read {
    files: TlsFiles,
    seen: [Stamp; 2],
    identity: Identity,
}

impl Read {
    /// Reads them now.
    ///
    /// # Errors
    /// They can't be used.
    pub(crate) fn of(files: TlsFiles) -> Result<Self, TlsFilesError> {
        // Stamped before they are read: a change in between is detected as a change.
        let seen = stamps(&files);
        let identity = files.read()?;
        Ok(Self { files, seen, identity })
    }
}

impl TlsWatch {
    /// Reads the files for the first time.
    ///
    /// # Errors
    /// They can't be used.
    pub(crate) fn start(files: TlsFiles) -> Result<Self, TlsFilesError> {
        let Read { files, seen, identity } = Read::of(files)?;
        let tls = Arc::new(ServerTls::new(identity));
        Ok(Self { tls, state: Mutex::new(State { files, seen, warned: None }) })
    }

    /// The pair in use.
    pub(crate) const fn tls(&self) -> &Arc<ServerTls> {
        &self.tls
    }

    /// Follows the files until the future is dropped.
    pub(crate) async fn follow(self: Arc<Self>) {
        file_stamp::follow(|| self.check()).await;
    }

    /// Applies files that were read, which may be others, and follows these from now on.
    pub(crate) fn show(&self, Read { files, seen, identity }: Read) {
        let mut state = self.state();
        self.tls.publish(identity);
        *state = State { files, seen, warned: None };
    }

    /// Reads the files again if one has changed. Two that don't fit change nothing: one may be written before the other.
    fn check(&self) {
        let mut state = self.state();
        let seen = stamps(&state.files);
        if seen == state.seen {
            return;
        }
        match state.files.read() {
            Ok(identity) => {
                self.tls.publish(identity);
                (state.seen, state.warned) = (seen, None);
                tracing::info!("the certificate {} is in use now", state.files.certificate.display());
            }
            Err(error) => state.warn(error.to_string()),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn warn(&mut self, what: String) {
        if self.warned.as_ref() != Some(&what) {
            tracing::warn!("{what}: the previous certificate stays in use. Correct the files");
            self.warned = Some(what);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// A new pair in files of this name.
    fn pair(folder: &Path, name: &str) -> TlsFiles {
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let [certificate, key] = ["pem", "key"].map(|end| folder.join(format!("{name}.{end}")));
        fs::write(&certificate, cert.pem()).unwrap();
        fs::write(&key, signing_key.serialize_pem()).unwrap();
        TlsFiles { certificate, key }
    }

    #[test]
    fn reload_takes_other_files_or_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| pair(folder.path(), name));
        let watch = TlsWatch::start(first.clone()).unwrap();
        let followed = |watch: &TlsWatch| watch.state().files.clone();
        let mixed = TlsFiles { key: second.key.clone(), ..first.clone() };
        let absent = TlsFiles { key: folder.path().join("absent"), ..first.clone() };
        for wrong in [mixed, absent] {
            assert!(Read::of(wrong).is_err());
            assert_eq!(followed(&watch), first);
        }
        watch.show(Read::of(second.clone()).unwrap());
        assert_eq!(followed(&watch), second);
        // The previous files no longer matter.
        fs::remove_file(&first.key).unwrap();
        watch.check();
        assert_eq!(watch.state().warned, None);
        fs::remove_file(&second.key).unwrap();
        watch.check();
        assert!(watch.state().warned.as_ref().is_some_and(|warned| warned.contains("second.key")));
    }
}
