//! Serves a connection from its first byte to its last.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use crate::connection::{Connection, Order, Phase};
use crate::socket::Socket;
use crate::worker::Worker;
use crate::{intake, self_wakes};

/// A connection that is open until this is dropped.
pub(crate) struct Open {
    pub(crate) worker: Rc<Worker>,
    /// Its number among the open connections.
    pub(crate) number: u64,
    pub(crate) _place: OwnedSemaphorePermit,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.worker.closed(self.number);
    }
}

/// Serves a connection to its end. What hyper says about the end is of no interest: the answer was given or
/// nobody waits for it.
pub(crate) fn serve(
    worker: Rc<Worker>,
    connection: Rc<Connection>,
    stream: TcpStream,
    http: http1::Builder,
) -> Pin<Box<impl Future<Output = ()>>> {
    let socket = Socket::new(stream, worker.clone(), connection.clone());
    let (for_requests, for_orders) = (connection.clone(), connection);
    let service = service_fn(move |request| {
        for_requests.enter(Phase::Body, worker.now());
        intake::handle(worker.clone(), &for_requests, request)
    });
    let mut serving = Box::pin(http.serve_connection(socket, service));
    let mut is_finishing = false;
    let mut waker = None;
    Box::pin(poll_fn(move |context| {
        // A task keeps its waker, so the first is enough.
        let waker = waker.get_or_insert_with(|| self_wakes::waker(context.waker()));
        for_orders.remember(waker);
        match for_orders.order() {
            Order::GoOn | Order::TooSlow => {}
            Order::Finish if std::mem::replace(&mut is_finishing, true) => {}
            Order::Finish => serving.as_mut().graceful_shutdown(),
            Order::Abort => return Poll::Ready(()),
        }
        serving.as_mut().poll(&mut Context::from_waker(waker)).map(drop)
    }))
}
