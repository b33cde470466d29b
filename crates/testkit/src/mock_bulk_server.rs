//! A small server that replaces Elasticsearch or OpenSearch and answers `_bulk` requests as a test wants: a test can't make a real
//! one too busy on demand.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The store's description of itself.
pub const ABOUT: &str = r#"{"version": {"number": "2.19.1", "distribution": "opensearch"}}"#;

/// A received request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method and path.
    pub line: String,
    /// The headers, in small letters.
    pub head: String,
    pub body: Vec<u8>,
}

impl Request {
    pub fn is_bulk(&self) -> bool {
        self.line.starts_with("POST /_bulk")
    }

    /// The ids of the documents of a `_bulk` request that isn't compressed.
    pub fn ids(&self) -> Vec<String> {
        let text = std::str::from_utf8(&self.body).unwrap();
        let id = |line: &str| line.split_once(r#""_id":""#).unwrap().1.split_once('"').unwrap().0.to_owned();
        text.lines().step_by(2).map(id).collect()
    }
}

/// The server. Its threads end with the connections.
pub struct MockBulkServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl MockBulkServer {
    /// One that answers `_bulk` requests with a status and a body, and says of itself that it is such a store.
    pub fn start(answer: impl Fn(&Request) -> (u16, String) + Send + Sync + 'static) -> Self {
        Self::raw(move |request| if request.is_bulk() { answer(request) } else { (200, ABOUT.to_owned()) })
    }

    /// One that answers everything so.
    pub fn raw(answer: impl Fn(&Request) -> (u16, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, requests) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let (kept, answer) = (Arc::clone(&requests), Arc::new(answer));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, kept, answer) = (client.unwrap(), Arc::clone(&kept), Arc::clone(&answer));
                std::thread::spawn(move || serve(client, &kept, &*answer));
            }
        });
        Self { address, requests }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Method and path of all requests since the last call.
    pub fn asked(&self) -> Vec<String> {
        let mut requests = self.requests.lock().unwrap();
        let line = |request: Request| request.line.split([' ', '?']).take(2).collect::<Vec<_>>().join(" ");
        std::mem::take(&mut *requests).into_iter().map(line).collect()
    }

    /// The `_bulk` requests since the last call.
    pub fn bulks(&self) -> Vec<Request> {
        let mut requests = self.requests.lock().unwrap();
        std::mem::take(&mut *requests).into_iter().filter(Request::is_bulk).collect()
    }
}

fn serve(client: TcpStream, kept: &Mutex<Vec<Request>>, answer: &dyn Fn(&Request) -> (u16, String)) {
    let mut reader = BufReader::new(client);
    while let Some(request) = read(&mut reader) {
        kept.lock().unwrap().push(request.clone());
        let (status, body) = answer(&request);
        let length = body.len();
        let whole = format!("HTTP/1.1 {status} Any\r\nContent-Length: {length}\r\n\r\n{body}");
        if reader.get_mut().write_all(whole.as_bytes()).is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        reader.read_line(&mut head).ok().filter(|count| *count > 0)?;
    }
    let head = head.to_ascii_lowercase();
    let length = head.split_once("content-length: ").map(|(_, behind)| behind.lines().next().unwrap());
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    Some(Request { line, head, body })
}

/// An answer to a `_bulk` request in which each document has the status that `status` says, by its number from 0.
pub fn outcomes(request: &Request, status: impl Fn(usize) -> u16) -> (u16, String) {
    let count = request.ids().len();
    let item = |number| match status(number) {
        201 => r#"{"create": {"_index": "i", "status": 201}}"#.to_owned(),
        status => format!(
            r#"{{"create": {{"_index": "i", "status": {status}, "error": {{"type": "some_exception", "reason": "words"}}}}}}"#
        ),
    };
    let items: Vec<String> = (0..count).map(item).collect();
    (200, format!(r#"{{"errors": true, "items": [{}]}}"#, items.join(",")))
}
