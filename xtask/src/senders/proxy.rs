//! A proxy between a sender and Forebay, which records requests and answers. It outlives the server: while that is down it closes
//! connections, as a load balancer does without a healthy server.

use std::io::{self, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, Result};

use super::marks;
use super::message::Message;
use super::tally::{Kill, Tally};

/// What the proxy shares with the campaign.
pub(super) struct Recorder {
    server: SocketAddr,
    tally: Mutex<Tally>,
    /// Each message is a kill that is due.
    kills: Mutex<Sender<()>>,
}

impl Recorder {
    /// Opens a proxy before `server` on a free port, which is returned. It ends with this process.
    pub(super) fn open(server: SocketAddr, kills: Sender<()>) -> Result<(Arc<Self>, SocketAddr)> {
        let listener = TcpListener::bind("127.0.0.1:0").context("opening the recording proxy")?;
        let address = listener.local_addr()?;
        let recorder = Arc::new(Self { server, tally: Mutex::default(), kills: Mutex::new(kills) });
        let shared = recorder.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let recorder = shared.clone();
                // A connection that breaks is part of the campaign.
                thread::spawn(move || drop(recorder.serve(&client)));
            }
        });
        Ok((recorder, address))
    }

    /// The counts so far.
    pub(super) fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, client: &TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let mut stream = BufReader::new(client);
        while let Some(request) = read_request(&mut stream, client)? {
            let events = marks::of_request(&request);
            let kill = self.tally().note_request(&events);
            let answer = self.pass(&request, kill);
            let Ok(Some(answer)) = answer else {
                self.tally().note_no_answer(&events);
                return Ok(());
            };
            self.tally().note_answer(&events, &request, &answer);
            (&mut &*client).write_all(&answer.bytes)?;
            if answer.is_last() || request.is_last() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Passes a request, and returns the answer that the sender gets, if it gets one.
    fn pass(&self, request: &Message, kill: Option<Kill>) -> io::Result<Option<Message>> {
        // One connection for each request: a kept one may have ended since the last.
        let sent = TcpStream::connect(self.server).and_then(|server| {
            server.set_nodelay(true)?;
            (&mut &server).write_all(&request.bytes)?;
            Ok(server)
        });
        if kill == Some(Kill::InFlight) {
            self.kill();
            return Ok(None);
        }
        let answer = sent.and_then(|server| read_answer(&server, request.method()));
        if kill == Some(Kill::AfterAnswer) {
            self.kill();
            return Ok(None);
        }
        answer.map(Some)
    }

    fn kill(&self) {
        // A campaign that has ended kills nothing.
        let _ = self.kills.lock().unwrap_or_else(PoisonError::into_inner).send(());
    }
}

fn read_request(stream: &mut BufReader<&TcpStream>, client: &TcpStream) -> io::Result<Option<Message>> {
    let Some(mut request) = Message::read_head(stream)? else { return Ok(None) };
    if request.header("expect").is_some() {
        (&mut &*client).write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    request.read_body(stream, None)?;
    Ok(Some(request))
}

fn read_answer(server: &TcpStream, method: &str) -> io::Result<Message> {
    let mut stream = BufReader::new(server);
    loop {
        let answer = Message::read(&mut stream, Some(method))?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if answer.status() >= 200 {
            return Ok(answer);
        }
    }
}
