//! A proxy before a server that can delay answers tenfold. It can be closed and opened again on the same address, as the
//! server itself would be.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use testkit::ports::free_address;

/// An answer takes so many times as long.
const SLOWER: u32 = 10;
/// No piece of an answer is held back for longer.
const HELD_MAX: Duration = Duration::from_secs(10);
const PIECE_BYTES: usize = 64 * 1024;

/// The proxy. Its connections end with those of its server.
pub struct SlowProxy {
    address: SocketAddr,
    server: SocketAddr,
    is_slow: Arc<AtomicBool>,
    accepting: Option<Accepting>,
}

/// The thread that takes connections, and how it learns that it is to end.
struct Accepting {
    thread: JoinHandle<()>,
    is_over: Arc<AtomicBool>,
}

impl SlowProxy {
    /// A proxy on a free port, which is closed.
    pub fn before(server: SocketAddr) -> Self {
        Self { address: free_address(), server, is_slow: Arc::default(), accepting: None }
    }

    /// Its address while it is open.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether answers are late from now on.
    pub fn set_slow(&self, is_slow: bool) {
        self.is_slow.store(is_slow, Ordering::SeqCst);
    }

    /// Takes connections.
    pub fn open(&mut self) -> Result<()> {
        let listener = TcpListener::bind(self.address).with_context(|| format!("listening on {}", self.address))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let (server, is_slow, ends) = (self.server, self.is_slow.clone(), is_over.clone());
        let thread = thread::spawn(move || {
            for client in listener.incoming() {
                if ends.load(Ordering::SeqCst) {
                    return;
                }
                // A connection that breaks is part of the campaign.
                let _ = client.and_then(|client| join(client, server, &is_slow));
            }
        });
        self.accepting = Some(Accepting { thread, is_over });
        Ok(())
    }

    /// Refuses connections from now on. Those that are open live on.
    pub fn close(&mut self) -> Result<()> {
        let Some(Accepting { thread, is_over }) = self.accepting.take() else { return Ok(()) };
        is_over.store(true, Ordering::SeqCst);
        TcpStream::connect(self.address).context("waking the proxy")?;
        thread.join().map_err(|_| anyhow!("the proxy panicked"))
    }
}

/// Connects a client with the server, with a thread for each direction.
fn join(client: TcpStream, server: SocketAddr, is_slow: &Arc<AtomicBool>) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (begun, asked) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let now = move || u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
    let sent = asked.clone();
    thread::spawn(move || pass(from_client, to_server, || sent.store(now(), Ordering::SeqCst)));
    let is_slow = is_slow.clone();
    thread::spawn(move || {
        pass(server, client, || {
            if is_slow.load(Ordering::SeqCst) {
                let took = Duration::from_nanos(now().saturating_sub(asked.load(Ordering::SeqCst)));
                thread::sleep((took * (SLOWER - 1)).min(HELD_MAX));
            }
        });
    });
    Ok(())
}

/// Passes pieces on until one side ends, and then ends both. `before` is called before each piece.
fn pass(mut from: TcpStream, mut to: TcpStream, mut before: impl FnMut()) {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match from.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(length) => {
                before();
                if to.write_all(&piece[..length]).is_err() {
                    break;
                }
            }
        }
    }
    // One of them may have ended before.
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers each byte after this time.
    fn echo_after(pause: Duration) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for client in listener.incoming() {
                let mut client = client.unwrap();
                let mut byte = [0];
                while client.read_exact(&mut byte).is_ok() {
                    thread::sleep(pause);
                    client.write_all(&byte).unwrap();
                }
            }
        });
        address
    }

    #[test]
    fn proxy_delays_answers_tenfold_and_can_close() {
        let pause = Duration::from_millis(20);
        let mut proxy = SlowProxy::before(echo_after(pause));
        assert!(TcpStream::connect(proxy.address()).is_err());
        proxy.open().unwrap();
        let mut client = TcpStream::connect(proxy.address()).unwrap();
        let mut ask = || {
            let begun = Instant::now();
            let mut byte = [0];
            client.write_all(b"x").unwrap();
            client.read_exact(&mut byte).unwrap();
            assert_eq!(byte, *b"x");
            begun.elapsed()
        };
        assert!(ask() >= pause);
        proxy.set_slow(true);
        assert!(ask() >= pause * SLOWER);
        proxy.close().unwrap();
        assert!(ask() >= pause, "a connection that was open lives on");
        assert!(TcpStream::connect(proxy.address()).is_err());
        proxy.open().unwrap();
        assert!(TcpStream::connect(proxy.address()).is_ok());
    }
}
