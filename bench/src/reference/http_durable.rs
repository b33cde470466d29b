//! The ceiling of HTTP intake, durable or not: one thread, epoll, nothing parsed beyond the blank line.
//!
//! Each round reads every request that is ready, writes all their bodies with one write and one fdatasync, and
//! then answers them all. A real server can come close to it but not pass it. It trusts its clients: a request
//! arrives in one piece, and its answer fits the socket's buffer.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use anyhow::{Context, Result};
use memchr::memmem::Finder;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::{Errno, read, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, accept_with, bind, listen, socket_with, sockopt};

use super::zero_filled::{ZeroFilled, padded};

const READY_MAX: usize = 1024;
const REQUEST_BYTES_MAX: usize = 64 * 1024;
/// Room for a record's header, which a real journal writes too.
const RECORD_HEADER_BYTES: usize = 16;
const RECORD_BYTES_MAX: usize = 4096;
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Listens on 127.0.0.1 and answers until the process is killed. Without a directory nothing is written.
pub(crate) fn run(port: u16, directory: Option<&Path>) -> Result<()> {
    let file = directory.map(ZeroFilled::new).transpose()?;
    let mut server = Loop::new(port, file).with_context(|| format!("listening on port {port}"))?;
    loop {
        server.round()?;
    }
}

struct Loop {
    file: Option<ZeroFilled>,
    epoll: OwnedFd,
    listener: OwnedFd,
    /// At the number of its descriptor.
    clients: Vec<Option<OwnedFd>>,
    ready: Vec<epoll::Event>,
    waiting: Vec<usize>,
    request: Vec<u8>,
    round: Vec<u8>,
    blank_line: Finder<'static>,
}

impl Loop {
    fn new(port: u16, file: Option<ZeroFilled>) -> Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let listener = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&listener, true)?;
        bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
        listen(&listener, 1024)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        watch(&epoll, &listener)?;
        Ok(Self {
            file,
            epoll,
            listener,
            clients: Vec::new(),
            ready: Vec::with_capacity(READY_MAX),
            waiting: Vec::with_capacity(READY_MAX),
            request: vec![0; REQUEST_BYTES_MAX],
            round: vec![0; padded(READY_MAX * RECORD_BYTES_MAX)],
            blank_line: Finder::new(b"\r\n\r\n"),
        })
    }

    fn round(&mut self) -> Result<()> {
        match epoll::wait(&self.epoll, spare_capacity(&mut self.ready), None) {
            Err(Errno::INTR) => return Ok(()),
            waited => waited.context("epoll_wait")?,
        };
        let mut length = 0;
        for at in 0..self.ready.len() {
            let descriptor = usize::try_from(self.ready[at].data.u64())?;
            if descriptor == number(&self.listener)? {
                self.accept()?;
            } else {
                length += self.take_request(descriptor, length);
            }
        }
        self.ready.clear();
        if !self.waiting.is_empty() {
            if let Some(file) = &mut self.file {
                file.commit(&self.round, length)?;
            }
            self.answer();
        }
        Ok(())
    }

    fn accept(&mut self) -> Result<()> {
        while let Ok(client) = accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            sockopt::set_tcp_nodelay(&client, true)?;
            watch(&self.epoll, &client)?;
            let descriptor = number(&client)?;
            if self.clients.len() <= descriptor {
                self.clients.resize_with(descriptor + 1, || None);
            }
            self.clients[descriptor] = Some(client);
        }
        Ok(())
    }

    /// Puts the body of a client's request at `offset` of the round, and says how much room it takes.
    fn take_request(&mut self, descriptor: usize, offset: usize) -> usize {
        let Some(client) = &self.clients[descriptor] else { return 0 };
        let Ok(received @ 1..) = read(client, &mut self.request[..]) else {
            self.clients[descriptor] = None;
            return 0;
        };
        let request = &self.request[..received];
        let Some(blank_line) = self.blank_line.find(request) else { return 0 };
        let body = &request[blank_line + 4..];
        let body = &body[..body.len().min(RECORD_BYTES_MAX - RECORD_HEADER_BYTES)];
        self.round[offset..offset + body.len()].copy_from_slice(body);
        self.waiting.push(descriptor);
        body.len() + RECORD_HEADER_BYTES
    }

    fn answer(&mut self) {
        for descriptor in self.waiting.drain(..) {
            let client = &mut self.clients[descriptor];
            if client.as_ref().is_some_and(|client| write(client, ANSWER).is_err()) {
                *client = None;
            }
        }
    }
}

fn watch(epoll: &OwnedFd, socket: &OwnedFd) -> Result<()> {
    Ok(epoll::add(epoll, socket, EventData::new_u64(number(socket)? as u64), EventFlags::IN)?)
}

fn number(descriptor: &OwnedFd) -> Result<usize> {
    Ok(usize::try_from(descriptor.as_raw_fd())?)
}
