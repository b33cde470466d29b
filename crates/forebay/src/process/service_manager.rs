//! Notifies systemd of the process's state, for units with `Type=notify`. The protocol is that of sd_notify(3): one datagram for each state.
//!
//! Without `NOTIFY_SOCKET` there is no manager to notify.

use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use settings::Environment;

/// The manager's variable: the path of its socket, or the name of an abstract socket after `@`.
const VARIABLE: &str = "NOTIFY_SOCKET";
/// The longest wait for a manager whose receive queue is full.
const SEND_MAX: Duration = Duration::from_secs(1);

/// A state of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It accepts requests.
    Ready,
    /// It reloads its configuration, and then is ready again.
    Reloading,
    /// It has received a signal to stop.
    Stopping,
}

/// The manager's socket, if there is one.
#[derive(Debug)]
pub(crate) struct ServiceManager(Option<String>);

impl ServiceManager {
    /// The manager that has started this process.
    pub(crate) fn of(environment: &Environment) -> Self {
        Self(environment.get(VARIABLE).and_then(Result::ok).map(|value| value.text.into_owned()))
    }

    /// Notifies the manager. A failure is a warning: systemd will end the process after its start timeout.
    pub(crate) fn notify(&self, state: State) {
        let Some(name) = &self.0 else { return };
        if let Err(error) = send(name, state) {
            tracing::warn!(reason = %error, "can't notify the service manager of {state:?}: check the socket {VARIABLE}={name}");
        }
    }
}

impl State {
    const fn message(self) -> &'static str {
        match self {
            Self::Ready => "READY=1",
            Self::Reloading => "RELOADING=1",
            Self::Stopping => "STOPPING=1",
        }
    }
}

fn send(name: &str, state: State) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(SEND_MAX))?;
    socket.send_to_addr(state.message().as_bytes(), &address(name)?)?;
    Ok(())
}

fn address(name: &str) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let Some(name) = name.strip_prefix('@') {
        return <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name);
    }
    SocketAddr::from_pathname(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager(name: &str) -> ServiceManager {
        ServiceManager::of(&[(VARIABLE, name)].into_iter().collect())
    }

    fn received(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    #[test]
    fn each_state_is_sent_to_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let manager = manager(path.to_str().unwrap());
        for (state, message) in
            [(State::Ready, "READY=1"), (State::Reloading, "RELOADING=1"), (State::Stopping, "STOPPING=1")]
        {
            manager.notify(state);
            assert_eq!(received(&socket), message);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn abstract_socket_is_reached() {
        let name = format!("@forebay-notify-{}", std::process::id());
        let socket = UnixDatagram::bind_addr(&address(&name).unwrap()).unwrap();
        manager(&name).notify(State::Ready);
        assert_eq!(received(&socket), "READY=1");
    }

    #[test]
    fn without_a_manager_nothing_happens() {
        ServiceManager::of(&Environment::default()).notify(State::Ready);
        assert!(send("/nowhere/at/all", State::Ready).is_err());
        manager("/nowhere/at/all").notify(State::Ready);
    }
}
