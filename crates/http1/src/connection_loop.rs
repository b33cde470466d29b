//! Serves a connection from its first byte to its last: one request after the other.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use event::object::Pieces;
use limits::HEADER_BYTES_MAX;
use tokio::net::TcpStream;

use crate::accept::{self, Opened};
use crate::error::{RequestError, RequestErrorKind};

use crate::body::{Body, Remainder};
use crate::connection::{ConnectionPeer, ConnectionState, Order, Phase};
use crate::framing::Framing;
use crate::handler::Handler;
use crate::head::{self, Head, Method, Parsed, Persistence};
use crate::response::{Response, WriteOptions};
use crate::socket::{Socket, Unread};
use crate::target::Scheme;

/// Serves a connection to its end. Errors of the socket are ignored: the response was sent, or no client waits for it.
pub async fn serve<H: Handler>(handler: &H, connection: Rc<ConnectionState>, stream: TcpStream) {
    let mut requests = pin!(requests(handler, &connection, stream));
    poll_fn(|context| {
        connection.remember(context.waker());
        handler.before_poll();
        match connection.order() {
            Order::Abort => Poll::Ready(()),
            Order::Continue | Order::Finish | Order::TooSlow => requests.as_mut().poll(context).map(drop),
        }
    })
    .await;
}

/// What a client sends next.
enum Next<R> {
    /// A request whose head was read.
    Request { request: R, framing: Framing, expects_continue: bool, persistence: Persistence, is_head: bool },
    /// It can't be parsed, and nothing after it can be trusted. The flag says whether it looked like HEAD.
    Refused(Box<RequestError>, bool),
    /// Nothing more.
    End,
}

async fn requests<H: Handler>(handler: &H, connection: &Rc<ConnectionState>, stream: TcpStream) -> io::Result<()> {
    let mut socket = match accept::open(handler, connection, stream).await {
        Opened::Ready(socket) => socket,
        Opened::NotSecure(socket) => return reject_plain(handler, socket).await,
        Opened::Refused(socket) => return socket.close(Unread::Little).await,
        Opened::Gone => return Ok(()),
    };
    let unread = loop {
        let (request, framing, expects_continue, persistence, is_head) = match next(handler, &mut socket).await? {
            Next::Request { request, framing, expects_continue, persistence, is_head } => {
                (request, framing, expects_continue, persistence, is_head)
            }
            Next::Refused(error, is_head) => {
                let was_slow = socket.connection().order() == Order::TooSlow;
                reject(handler, &mut socket, error, is_head).await?;
                break if was_slow { Unread::Little } else { Unread::Body };
            }
            Next::End => break Unread::Nothing,
        };
        let mut body = Body::new(&mut socket, framing, expects_continue);
        let response = handler.respond(&request, &mut body).await;
        let remainder = body.finish().await;
        let is_read = remainder == Remainder::None;
        handler.responded(&request, response.status, body.received);
        drop(body);
        // A client that keeps its connection would be cut off by the end, possibly with a request in flight.
        let is_ending = handler.transport().is_ending() || handler.is_stopping();
        let persistence = if is_read && !is_ending { persistence } else { Persistence::Close };
        respond(handler, &mut socket, response, persistence, is_head).await?;
        if persistence == Persistence::Close {
            let is_ending = handler.transport().is_ending();
            break match remainder {
                // The client is too slow to send much.
                _ if socket.connection().order() == Order::TooSlow => Unread::Little,
                Remainder::Coming if is_ending => Unread::Little,
                Remainder::Coming => Unread::Body,
                Remainder::NotSent => Unread::Nothing,
                // More requests may be in flight.
                Remainder::None if is_ending || !socket.held().is_empty() => Unread::Little,
                Remainder::None => Unread::Nothing,
            };
        }
        connection.enter(Phase::Idle, socket.now());
        if !socket.held().is_empty() {
            yield_to_others(handler).await;
        }
    };
    socket.close(unread).await
}

/// Lets all other tasks run, and what they have appended be committed.
async fn yield_to_others<H: Handler>(handler: &H) {
    handler.before_pipelined();
    tokio::task::yield_now().await;
}

/// Rejects what can't be parsed, or must not arrive this way.
async fn reject<H: Handler>(
    handler: &H,
    socket: &mut Socket,
    error: Box<RequestError>,
    is_head: bool,
) -> io::Result<()> {
    respond(handler, socket, handler.reject(error), Persistence::Close, is_head).await
}

/// Answers a client that this port speaks TLS. What it sends is discarded.
async fn reject_plain<H: Handler>(handler: &H, mut socket: Socket) -> io::Result<()> {
    let error = RequestError::titled("TLS required", "this port speaks TLS: begin the URL with https://");
    reject(handler, &mut socket, error, false).await?;
    socket.close(Unread::Body).await
}

async fn respond<H: Handler>(
    handler: &H,
    socket: &mut Socket,
    mut response: Response,
    persistence: Persistence,
    is_head: bool,
) -> io::Result<()> {
    // It is dropped when all is written, after the body.
    let _reservation = response.reservation.take();
    let streamed = response.streamed.as_mut().and_then(|streamed| Some((streamed.bytes, streamed.pieces.take()?)));
    let write = move |bytes: &mut Vec<u8>| {
        let transport = handler.transport();
        let (date, kept_alive) = (&transport.date(), &transport.kept_alive());
        response.write(WriteOptions { date, kept_alive, persistence, is_head }, bytes);
    };
    socket.write(write).await?;
    match streamed {
        Some((bytes, pieces)) => write_pieces(handler, socket, bytes, pieces).await,
        None => Ok(()),
    }
}

/// Writes a body as it arrives. If it ends early, so does the connection: its client sees fewer bytes than announced.
async fn write_pieces<H: Handler>(
    handler: &H,
    socket: &mut Socket,
    mut left: u64,
    mut pieces: Box<dyn Pieces>,
) -> io::Result<()> {
    while left > 0 {
        // The client waits for the store.
        socket.connection().enter(Phase::Answer, socket.now());
        let piece = poll_fn(|context| pieces.poll_next(context)).await;
        let piece = piece.ok_or(io::ErrorKind::UnexpectedEof)?.map_err(io::Error::other)?;
        left = left.checked_sub(piece.len() as u64).ok_or(io::ErrorKind::InvalidData)?;
        socket.write(|bytes| bytes.extend_from_slice(&piece)).await?;
        yield_to_others(handler).await;
    }
    Ok(())
}

/// Waits for the next request.
async fn next<H: Handler>(handler: &H, socket: &mut Socket) -> io::Result<Next<H::Request>> {
    let mut waiting = Waiting::default();
    poll_fn(|context| poll_next(handler, socket, &mut waiting, context)).await
}

/// The received part of a request whose head isn't complete.
#[derive(Default)]
struct Waiting {
    /// How many of the received bytes are known to contain no complete head.
    known: usize,
    /// Empty lines that were skipped.
    empty_lines: usize,
}

fn poll_next<H: Handler>(
    handler: &H,
    socket: &mut Socket,
    waiting: &mut Waiting,
    context: &mut Context<'_>,
) -> Poll<io::Result<Next<H::Request>>> {
    let peer = socket.connection().peer;
    loop {
        if socket.held().len() > waiting.known {
            let (taken, next) = begin(handler, peer, socket.held(), waiting);
            socket.take(taken);
            if let Some(next) = next {
                return Poll::Ready(Ok(next));
            }
        }
        let has_part = !socket.held().is_empty();
        match socket.connection().order() {
            Order::TooSlow if has_part => {
                let refused = RequestError::boxed(
                    RequestErrorKind::Timeout,
                    "the request line and headers arrived too slowly; send them faster",
                );
                return Poll::Ready(Ok(Next::Refused(refused, false)));
            }
            _ => {}
        }
        if has_part && socket.connection().phase() == Phase::Idle {
            socket.connection().enter(Phase::Head, socket.now());
        }
        // At most the bytes of a head: what follows it isn't counted while it waits to be parsed.
        let read = socket.poll_read(context, HEADER_BYTES_MAX, |bytes| begin(handler, peer, bytes, waiting));
        // A request received before the order to finish is answered: its client couldn't know of the stop.
        if read.is_pending() && socket.connection().order() == Order::Finish && !has_part {
            return Poll::Ready(Ok(Next::End));
        }
        match ready!(read)? {
            Some(Some(next)) => return Poll::Ready(Ok(next)),
            Some(None) => {}
            None => return Poll::Ready(Ok(Next::End)),
        }
    }
}

/// Begins the request whose head is at the start of `bytes`. If the head isn't complete, only the empty lines before it are consumed.
fn begin<H: Handler>(
    handler: &H,
    peer: ConnectionPeer,
    bytes: &[u8],
    waiting: &mut Waiting,
) -> (usize, Option<Next<H::Request>>) {
    let scheme = handler.transport().scheme();
    let Waiting { known, empty_lines } = waiting;
    let may_end = *known == 0 || head::may_end(bytes, *known);
    let parsed = if may_end { head::parse(bytes, *empty_lines) } else { Ok(Parsed::Part) };
    *known = bytes.len();
    match parsed {
        Ok(Parsed::Head(head, _)) if head.target.scheme.is_some_and(|named| named != scheme) => {
            (0, Some(Next::Refused(of_other_scheme(scheme), head.method == Method::Head)))
        }
        Ok(Parsed::Head(head, length)) => {
            let request = handler.begin(peer, &head);
            let Head { framing, expects_continue, persistence, method, .. } = head;
            let is_head = method == Method::Head;
            (length, Some(Next::Request { request, framing, expects_continue, persistence, is_head }))
        }
        Ok(Parsed::EmptyLines(lines)) => {
            *known = 0;
            *empty_lines += lines;
            (lines * head::EMPTY_LINE_BYTES, None)
        }
        Ok(Parsed::Part) => (0, None),
        Err(refused) => (0, Some(Next::Refused(refused, bytes.trim_ascii_start().starts_with(b"HEAD ")))),
    }
}

/// A URL with one scheme differs from the same URL with the other (RFC 9110 §4.2.3).
fn of_other_scheme(scheme: Scheme) -> Box<RequestError> {
    let detail = match scheme {
        Scheme::Http => "the target is an https URL, but this connection has no TLS: use TLS, or an http URL",
        Scheme::Https => "the target is an http URL, but this connection has TLS: use an https URL",
    };
    RequestError::titled("Scheme mismatch", detail)
}
