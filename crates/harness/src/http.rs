//! A client for one keep-alive connection: just enough HTTP/1.1 for Forebay's own answers.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// No answer of Forebay takes longer, so a client that waits longer has been forgotten.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection on which requests follow each other.
pub struct Connection {
    stream: BufReader<TcpStream>,
}

/// A response.
#[derive(Debug, PartialEq, Eq)]
pub struct RawResponse {
    /// The code.
    pub status: u16,
    /// Everything after the head.
    pub body: Vec<u8>,
}

impl Connection {
    /// Connects.
    pub fn open(server: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&server, ANSWER_TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
        Ok(Self { stream: BufReader::with_capacity(1024, stream) })
    }

    /// Sends a request that [`post`] built, and reads its answer. An answer that has begun and isn't whole is
    /// [`io::ErrorKind::InvalidData`]; with any other error, nothing was answered.
    pub fn send(&mut self, request: &[u8]) -> io::Result<RawResponse> {
        self.stream.get_mut().write_all(request)?;
        let is_over = loop {
            match self.stream.fill_buf() {
                // A signal, as when the process is stopped and continued, is no answer.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?.is_empty(),
            }
        };
        if is_over {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        read_answer(&mut self.stream).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Sends the beginning of a request; [`Self::send`] sends the rest.
    pub fn begin(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Sends a GET and reads its response.
    pub fn get(&mut self, path: &str) -> io::Result<RawResponse> {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
    }
}

/// A client that keeps its connection, and opens another one after an error.
pub struct Client {
    server: SocketAddr,
    connection: Option<Connection>,
}

impl Client {
    /// A client without a connection.
    pub const fn new(server: SocketAddr) -> Self {
        Self { server, connection: None }
    }

    /// Opens a connection if there is none.
    pub fn connect(&mut self) -> io::Result<&mut Connection> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(self.server)?,
        };
        Ok(self.connection.insert(connection))
    }

    /// Whether it has a connection.
    pub const fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Ends its connection.
    pub fn disconnect(&mut self) {
        self.connection = None;
    }

    /// Sends a request as [`Connection::send`] does.
    pub fn send(&mut self, request: &[u8]) -> io::Result<RawResponse> {
        let answer = self.connect()?.send(request);
        if answer.is_err() {
            self.disconnect();
        }
        answer
    }
}

/// Sends a GET on a new connection.
pub fn get(server: SocketAddr, path: &str) -> io::Result<RawResponse> {
    Connection::open(server)?.get(path)
}

/// Whether the server is ready for requests.
pub fn is_ready(server: SocketAddr) -> bool {
    get(server, "/readyz").is_ok_and(|answer| answer.status == 200)
}

/// A POST as bytes. `headers` are whole lines without their ends.
pub fn post(path: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let mut head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n", body.len());
    for header in headers {
        let _ = write!(head, "{header}\r\n");
    }
    head.push_str("\r\n");
    [head.as_bytes(), body].concat()
}

fn read_answer(stream: &mut impl BufRead) -> io::Result<RawResponse> {
    let status_line = read_line(stream)?;
    let status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| malformed(&status_line))?;
    let mut length = 0;
    let mut chunked = false;
    loop {
        let line = read_line(stream)?.to_ascii_lowercase();
        match line.split_once(':') {
            Some(("content-length", value)) => length = value.trim().parse().map_err(|_| malformed(&line))?,
            Some(("transfer-encoding", value)) => chunked = value.trim() == "chunked",
            Some(_) => {}
            None => break,
        }
    }
    let body = if chunked { read_chunks(stream)? } else { read_bytes(stream, length)? };
    Ok(RawResponse { status, body })
}

fn read_chunks(stream: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(stream)?;
        let length = usize::from_str_radix(&line, 16).map_err(|_| malformed(&line))?;
        body.extend(read_bytes(stream, length)?);
        read_line(stream)?;
        if length == 0 {
            return Ok(body);
        }
    }
}

fn read_bytes(stream: &mut impl BufRead, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    stream.by_ref().take(16 * 1024).read_line(&mut line)?;
    match line.strip_suffix("\r\n") {
        Some(line) => Ok(line.to_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn malformed(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not an HTTP answer: {line:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_to_their_end() {
        let bytes =
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n\
                      3\r\nabc\r\n1\r\nd\r\n0\r\n\r\nHTTP/1.1 20";
        let mut stream = &bytes[..];
        assert_eq!(read_answer(&mut stream).unwrap(), RawResponse { status: 200, body: b"hi".to_vec() });
        assert_eq!(read_answer(&mut stream).unwrap(), RawResponse { status: 503, body: b"abcd".to_vec() });
        assert_eq!(read_answer(&mut stream).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
