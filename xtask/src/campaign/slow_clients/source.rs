//! Connections from addresses of this machine's own network, to look like many clients.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use rustix::net::sockopt::{set_socket_linger, set_socket_recv_buffer_size, set_tcp_nodelay};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

/// Connections of one address: far below its ports.
const PER_ADDRESS: u64 = 250;
/// Below 127.1.0.0 others may be at home.
const FIRST: u32 = 0x7f01_0000;
const ADDRESSES: u64 = 0x00fe_0000;

/// How a connection is set up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Manner {
    /// The kernel buffers as little as it can of unread bytes.
    pub(super) reads_little: bool,
    /// It ends with a reset.
    pub(super) resets: bool,
}

/// Connects to `server` as client `number`.
pub(super) fn open(server: SocketAddr, number: u64, manner: Manner) -> io::Result<TcpStream> {
    let from = u32::try_from(number / PER_ADDRESS % ADDRESSES).unwrap_or(0);
    let address = SocketAddr::from((Ipv4Addr::from(FIRST + from), 0));
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    if manner.reads_little {
        set_socket_recv_buffer_size(&socket, 1)?;
    }
    if manner.resets {
        set_socket_linger(&socket, Some(std::time::Duration::ZERO))?;
    }
    set_tcp_nodelay(&socket, true)?;
    bind(&socket, &address)?;
    connect(&socket, &server)?;
    Ok(socket.into())
}
