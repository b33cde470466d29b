//! A server that answers as a test wants, for answers that the real one doesn't give on request. Each connection has one request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A received request.
#[derive(Clone, Debug)]
pub struct MockRequest {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl MockRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// The answer: status, headers, body.
pub type MockResponse = (u16, Vec<(&'static str, String)>, Vec<u8>);

/// A running server. It ends with the process.
pub struct MockServer {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<MockRequest>>>,
}

impl MockServer {
    pub fn start(mut answer: impl FnMut(&MockRequest) -> MockResponse + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, asked) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<MockRequest>>>::default());
        let noted = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some(asked) = read(&stream) else { continue };
                noted.lock().unwrap().push(asked.clone());
                let (status, headers, body) = answer(&asked);
                let mut head = format!("HTTP/1.1 {status} x\r\nConnection: close\r\n");
                headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
                if !headers.iter().any(|(name, _)| *name == "Content-Length") {
                    head += &format!("Content-Length: {}\r\n", body.len());
                }
                let _ = stream.write_all(format!("{head}\r\n").as_bytes());
                if asked.method != "HEAD" {
                    let _ = stream.write_all(&body);
                }
            }
        });
        Self { address, asked }
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<MockRequest> {
        self.asked.lock().unwrap().clone()
    }

    /// Their methods and paths' last parts.
    pub fn methods(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.method).collect()
    }
}

fn read(stream: &TcpStream) -> Option<MockRequest> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut asked = MockRequest { method, path, headers, body: Vec::new() };
    let length = asked.header("Content-Length").map_or(0, |length| length.parse().unwrap());
    asked.body = vec![0; length];
    reader.read_exact(&mut asked.body).ok()?;
    Some(asked)
}
