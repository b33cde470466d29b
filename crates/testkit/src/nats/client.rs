//! A client of a test's own: it shares nothing with the sink's.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Messages that are fetched at a time.
const PAGE: usize = 500;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A connection.
pub struct NatsClient {
    stream: BufReader<TcpStream>,
    /// The prefix of the subjects of answers, unique to this client.
    inbox: String,
    asked: u32,
}

/// A message as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsMessage {
    pub subject: String,
    pub headers: String,
    pub payload: Vec<u8>,
}

impl NatsMessage {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
    }
}

impl NatsClient {
    /// Connects as a user.
    ///
    /// # Panics
    /// The server rejects it.
    pub fn connect(address: SocketAddr, user: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let inbox = format!("_INBOX.test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut client = Self { stream: BufReader::new(stream), inbox, asked: 0 };
        let comma = if user.is_empty() { "" } else { "," };
        client.send(
            format!(
                "CONNECT {{\"verbose\":false,\"headers\":true,\"no_responders\":true,\"protocol\":1{comma}{user}}}\r\n\
                 SUB {}.* 1\r\nPING\r\n",
                client.inbox
            )
            .as_bytes(),
        );
        while client.line() != "PONG" {}
        client
    }

    /// Sends bytes of the protocol.
    ///
    /// # Panics
    /// The connection is lost.
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let line = line.trim_end().to_owned();
        assert!(!line.is_empty() && !line.starts_with("-ERR"), "the server said {line:?}");
        line
    }

    fn reply(&mut self) -> String {
        self.asked += 1;
        format!("{}.{}", self.inbox, self.asked)
    }

    /// Sends a request without waiting for its answer. Returns the subject of the answer.
    pub fn begin(&mut self, subject: &str, payload: &str) -> String {
        let inbox = self.reply();
        self.send(format!("PUB {subject} {inbox} {}\r\n{payload}\r\n", payload.len()).as_bytes());
        inbox
    }

    /// The answer to a request.
    pub fn request(&mut self, subject: &str, payload: &str) -> NatsMessage {
        self.begin(subject, payload);
        self.next_message()
    }

    /// JetStream's answer to a request.
    pub fn ask(&mut self, subject: &str, payload: &str) -> String {
        String::from_utf8(self.request(subject, payload).payload).unwrap()
    }

    /// Publishes past the sink.
    pub fn publish(&mut self, subject: &str, headers: &str, payload: &str) -> String {
        let inbox = self.reply();
        let headers = format!("NATS/1.0\r\n{headers}\r\n");
        let all = headers.len() + payload.len();
        self.send(format!("HPUB {subject} {inbox} {} {all}\r\n{headers}{payload}\r\n", headers.len()).as_bytes());
        String::from_utf8(self.next_message().payload).unwrap()
    }

    /// Publishes without a request for an answer.
    pub fn send_only(&mut self, subject: &str, headers: &str, payload: &str) {
        let headers = format!("NATS/1.0\r\n{headers}\r\n");
        let all = headers.len() + payload.len();
        self.send(format!("HPUB {subject} {} {all}\r\n{headers}{payload}\r\n", headers.len()).as_bytes());
    }

    /// The next message for this client.
    pub fn next_message(&mut self) -> NatsMessage {
        loop {
            let line = self.line();
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            if words[0] == "PING" {
                self.send(b"PONG\r\n");
            }
            if !words[0].ends_with("MSG") {
                continue;
            }
            let all: usize = words.last().unwrap().parse().unwrap();
            let length = if words[0] == "HMSG" { words[words.len() - 2].parse().unwrap() } else { 0 };
            let mut body = vec![0; all + 2];
            self.stream.read_exact(&mut body).unwrap();
            let headers = String::from_utf8(body[..length].to_vec()).unwrap();
            return NatsMessage { subject: words[1].to_owned(), headers, payload: body[length..all].to_vec() };
        }
    }

    /// A request to the API of streams.
    pub fn stream(&mut self, verb: &str, stream: &str, payload: &str) -> String {
        self.ask(&format!("$JS.API.STREAM.{verb}.{stream}"), payload)
    }

    /// How many messages a stream has, cursors among them; none if there is no such stream.
    pub fn count(&mut self, stream: &str) -> Option<u64> {
        let info = self.stream("INFO", stream, "");
        let (_, state) = info.split_once("\"state\":")?;
        let (_, behind) = state.split_once("\"messages\":")?;
        behind.split_once(',')?.0.parse().ok()
    }

    /// Each message that a stream has under subjects, in its order, as a consumer gets them. Their subjects are those of
    /// acknowledgements: they end with numbers, of which the first two are its deliveries and its sequence.
    pub fn messages(&mut self, stream: &str, subjects: &str) -> Vec<NatsMessage> {
        let mut messages = Vec::new();
        self.each(stream, subjects, |message| messages.push(message));
        messages
    }

    /// The same, one at a time.
    pub fn each(&mut self, stream: &str, subjects: &str, mut take: impl FnMut(NatsMessage)) {
        let wanted = format!(
            "{{\"stream_name\":\"{stream}\",\"config\":{{\"deliver_policy\":\"all\",\"ack_policy\":\"none\",\
             \"filter_subject\":\"{subjects}\",\"inactive_threshold\":60000000000,\"mem_storage\":true}}}}"
        );
        let made = self.ask(&format!("$JS.API.CONSUMER.CREATE.{stream}"), &wanted);
        if made.contains("stream not found") {
            return;
        }
        let (_, behind) = made.split_once("\"name\":\"").unwrap_or_else(|| panic!("{made}"));
        let name = behind.split('"').next().unwrap().to_owned();
        loop {
            let inbox = self.reply();
            let next = format!("{{\"batch\":{PAGE},\"no_wait\":true}}");
            let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}");
            self.send(format!("PUB {subject} {inbox} {}\r\n{next}\r\n", next.len()).as_bytes());
            for _ in 0..PAGE {
                let message = self.next_message();
                // A status instead of a message: the end.
                if message.payload.is_empty() && message.headers.starts_with("NATS/1.0 4") {
                    return;
                }
                take(message);
            }
        }
    }
}
