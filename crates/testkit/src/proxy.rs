//! A proxy before the server: it counts the bytes of answers, cuts connections after so many bytes, and freezes
//! on request. It can be at a distance.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// The state of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Open,
    /// So many bytes of answers still; then every connection is cut, and new ones are too.
    Until(usize),
    /// So many bytes of answers still; then nothing is forwarded, and nothing is lost.
    FrozenAfter(usize),
}

/// The server's address.
enum Server {
    Socket(PathBuf),
    Address(SocketAddr),
}

struct State {
    mode: Mode,
    answered: usize,
}

/// The proxy. Its threads end with the connections.
#[derive(Clone)]
pub struct Proxy {
    address: SocketAddr,
    /// Each piece of an answer arrives so much later.
    delay: Duration,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Proxy {
    /// A proxy to the server at this socket.
    pub fn start(socket: &Path) -> Self {
        Self::delayed(socket, Duration::ZERO)
    }

    /// The same at a distance: each piece of an answer arrives so much later.
    pub fn delayed(socket: &Path, delay: Duration) -> Self {
        Self::before(Server::Socket(socket.to_owned()), delay)
    }

    /// A proxy to the server that listens there.
    pub fn to(address: SocketAddr) -> Self {
        Self::before(Server::Address(address), Duration::ZERO)
    }

    fn before(server: Server, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new((Mutex::new(State { mode: Mode::Open, answered: 0 }), Condvar::new()));
        let proxy = Self { address, delay, state };
        let accepting = proxy.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                accepting.serve(client.unwrap(), &server);
            }
        });
        proxy
    }

    /// The proxy's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    fn serve(&self, client: TcpStream, server: &Server) {
        // A server that is down cuts immediately.
        // Small pieces follow each other: held back until the one before is acknowledged, each takes 40 ms.
        client.set_nodelay(true).unwrap();
        match server {
            Server::Socket(path) => {
                let Ok(server) = UnixStream::connect(path) else { return };
                self.join(client, server.try_clone().unwrap(), server);
            }
            Server::Address(address) => {
                let Ok(server) = TcpStream::connect(address) else { return };
                self.join(client, server.try_clone().unwrap(), server);
            }
        }
    }

    fn join<S: Read + Write + End + Send + 'static>(&self, client: TcpStream, to: S, server: S) {
        let (proxy, from) = (self.clone(), client.try_clone().unwrap());
        std::thread::spawn(move || proxy.pump(from, to, false));
        let proxy = self.clone();
        std::thread::spawn(move || proxy.pump(server, client, true));
    }

    /// Hands on until one side ends or the proxy cuts.
    fn pump<R: Read + End, W: Write + End>(&self, mut from: R, mut to: W, are_answers: bool) {
        let mut buffer = [0; 16 * 1024];
        while let Ok(count) = from.read(&mut buffer) {
            if are_answers {
                std::thread::sleep(self.delay);
            }
            let (mut sent, mut ends) = (0, count == 0);
            while sent < count && !ends {
                let allowed = self.pass(count - sent, are_answers);
                ends = allowed == 0 || to.write_all(&buffer[sent..sent + allowed]).is_err();
                sent += allowed;
            }
            if ends {
                break;
            }
        }
        from.end();
        to.end();
    }

    /// How many of so many bytes may be forwarded, as soon as any may; none if the connection has to be cut.
    fn pass(&self, count: usize, are_answers: bool) -> usize {
        let (state, changed) = &*self.state;
        let frozen = |state: &mut State| state.mode == Mode::FrozenAfter(0);
        let mut state = changed.wait_while(state.lock().unwrap(), frozen).unwrap();
        if are_answers { state.spend(count) } else { count }
    }

    /// Cuts all connections as soon as the server has answered so many bytes more.
    pub fn cut_after(&self, bytes: usize) -> FaultGuard {
        self.set(Mode::Until(bytes))
    }

    /// Freezes as soon as the server has answered so many bytes more, until the guard is dropped.
    pub fn freeze_after(&self, bytes: usize) -> FaultGuard {
        self.set(Mode::FrozenAfter(bytes))
    }

    /// Whether it is frozen by now.
    pub fn is_frozen(&self) -> bool {
        self.state.0.lock().unwrap().mode == Mode::FrozenAfter(0)
    }

    /// Bytes that the server has answered so far.
    pub fn answered(&self) -> usize {
        self.state.0.lock().unwrap().answered
    }

    fn set(&self, mode: Mode) -> FaultGuard {
        self.state.0.lock().unwrap().mode = mode;
        FaultGuard(self.clone())
    }
}

impl State {
    /// How many of so many bytes of answers go through.
    fn spend(&mut self, count: usize) -> usize {
        let allowed = match &mut self.mode {
            Mode::Open => count,
            Mode::Until(left) | Mode::FrozenAfter(left) => {
                let allowed = count.min(*left);
                *left -= allowed;
                allowed
            }
        };
        self.answered += allowed;
        allowed
    }
}

/// Opens the proxy again on drop.
pub struct FaultGuard(Proxy);

impl Drop for FaultGuard {
    fn drop(&mut self) {
        let (state, changed) = &*self.0.state;
        state.lock().unwrap().mode = Mode::Open;
        changed.notify_all();
    }
}

/// A stream that can be cut while another thread waits for it.
trait End {
    fn end(&self);
}

impl End for TcpStream {
    fn end(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl End for UnixStream {
    fn end(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}
