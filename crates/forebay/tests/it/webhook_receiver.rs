//! A receiver of webhooks that answers each message as a test decides.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

pub(crate) const ACCEPTED: &str = "204 No Content";

/// Starts a receiver. `answer` gets the identifier and the body of each message, and returns the status line's end.
pub(crate) fn start(answer: impl Fn(String, &[u8]) -> &'static str + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            std::thread::spawn(move || serve(&stream, &*answer));
        }
    });
    address
}

/// Answers the requests of a connection until it is closed.
fn serve(stream: &TcpStream, answer: &impl Fn(String, &[u8]) -> &'static str) -> Option<()> {
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    loop {
        let (mut length, mut identifier, mut line) = (0, String::new(), String::new());
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
            match line.to_ascii_lowercase().split_once(':') {
                Some(("content-length", value)) => length = value.trim().parse().ok()?,
                Some(("webhook-id", value)) => identifier = value.trim().to_owned(),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let status = answer(identifier, &body);
        let length = if status == ACCEPTED { "" } else { "Content-Length: 0\r\n" };
        writer.write_all(format!("HTTP/1.1 {status}\r\n{length}\r\n").as_bytes()).ok()?;
    }
}
