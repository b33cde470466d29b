//! A gate in front of the server: while it is closed, writes wait at it, and all other requests pass.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

/// The beginning of a write. Clients begin a request after the previous response: so it is at the beginning of the
/// bytes that are read.
const WRITE: &[u8] = b"POST /_bulk";

#[derive(Default)]
struct State {
    is_closed: Mutex<bool>,
    opened: Condvar,
}

/// The gate. Its threads end with the connections.
pub(crate) struct Gate {
    address: SocketAddr,
    state: Arc<State>,
}

impl Gate {
    /// A gate in front of the server at this address.
    pub(crate) fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, state) = (listener.local_addr().unwrap(), Arc::<State>::default());
        let held = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                // A server that is down looks like one that closes immediately.
                let (client, Ok(server)) = (client.unwrap(), TcpStream::connect(server)) else { continue };
                let (answers, to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let held = Arc::clone(&held);
                std::thread::spawn(move || pump(client, server, |bytes| held.pass(bytes)));
                std::thread::spawn(move || pump(answers, to_client, |_| {}));
            }
        });
        Self { address, state }
    }

    /// Its address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes it until the value is dropped.
    pub(crate) fn close(&self) -> Closed {
        *self.state.is_closed.lock().unwrap() = true;
        Closed(Arc::clone(&self.state))
    }
}

impl State {
    /// Waits at the beginning of a write.
    fn pass(&self, bytes: &[u8]) {
        if bytes.starts_with(WRITE) {
            let is_closed = self.is_closed.lock().unwrap();
            drop(self.opened.wait_while(is_closed, |is_closed| *is_closed).unwrap());
        }
    }
}

/// Opens the gate when it is dropped.
pub(crate) struct Closed(Arc<State>);

impl Drop for Closed {
    fn drop(&mut self) {
        *self.0.is_closed.lock().unwrap() = false;
        self.0.opened.notify_all();
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, before: impl Fn(&[u8])) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        before(&buffer[..count]);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
