//! A service on a bus, over the raw protocol: it shares no code with the crate that the server uses.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often a worker without requests looks for answers that are due.
const TICK: Duration = Duration::from_millis(5);
const READ_BYTES: usize = 256 * 1024;

/// A request, and the subject of its answer.
pub struct BusRequest<'a> {
    reply: &'a str,
    /// The body.
    pub body: &'a [u8],
}

/// The answers of a worker. Those for later outlive its connection.
#[derive(Default)]
pub struct Replies {
    now: Vec<u8>,
    later: Vec<(Instant, Vec<u8>)>,
    is_killed: bool,
}

impl Replies {
    /// Answers immediately.
    pub fn send(&mut self, request: &BusRequest<'_>, body: &[u8]) {
        self.now.extend(message(request, body));
    }

    /// Answers after a delay.
    pub fn send_after(&mut self, delay: Duration, request: &BusRequest<'_>, body: &[u8]) {
        self.later.push((Instant::now() + delay, message(request, body)));
    }

    /// Ends the connection as a SIGKILL does: requests that it has read and not answered stay unanswered.
    pub const fn kill(&mut self) {
        self.is_killed = true;
    }

    fn take_due(&mut self) {
        let due = self.later.extract_if(.., |(at, _)| *at <= Instant::now());
        due.for_each(|(_, message)| self.now.extend(message));
    }
}

fn message(request: &BusRequest<'_>, body: &[u8]) -> Vec<u8> {
    [format!("PUB {} {}\r\n", request.reply, body.len()).as_bytes(), body, b"\r\n"].concat()
}

/// Answers the requests to a subject, as one of the queue group `workers`, until it is over. It connects again whenever its connection ends.
pub fn run(
    bus: SocketAddr,
    subject: &str,
    is_over: &AtomicBool,
    mut answer: impl FnMut(&BusRequest<'_>, &mut Replies),
) {
    let mut replies = Replies::default();
    while !is_over.load(Ordering::Relaxed) {
        replies.now.clear();
        // A bus that is down is a part of the campaigns.
        let _ = serve(bus, subject, is_over, &mut replies, &mut answer);
        replies.is_killed = false;
        thread::sleep(TICK);
    }
}

fn serve(
    bus: SocketAddr,
    subject: &str,
    is_over: &AtomicBool,
    replies: &mut Replies,
    answer: &mut impl FnMut(&BusRequest<'_>, &mut Replies),
) -> io::Result<()> {
    let mut stream = TcpStream::connect(bus)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TICK))?;
    stream.write_all(
        format!("CONNECT {{\"verbose\":false,\"headers\":true}}\r\nSUB {subject} workers 1\r\n").as_bytes(),
    )?;
    let (mut taken, mut room) = (Vec::new(), vec![0; READ_BYTES]);
    while !is_over.load(Ordering::Relaxed) {
        match stream.read(&mut room) {
            Ok(0) => return Ok(()),
            Ok(bytes) => taken.extend_from_slice(&room[..bytes]),
            Err(error)
                if [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::Interrupted].contains(&error.kind()) => {}
            Err(error) => return Err(error),
        }
        let mut used = 0;
        while let Some(bytes) = take(&taken[used..], replies, answer) {
            used += bytes;
        }
        if replies.is_killed {
            return Ok(());
        }
        taken.drain(..used);
        replies.take_due();
        stream.write_all(&std::mem::take(&mut replies.now))?;
    }
    Ok(())
}

/// Takes one line of the bus, with the message that follows it. Returns how many bytes it has; nothing if it isn't whole.
fn take(bytes: &[u8], replies: &mut Replies, answer: &mut impl FnMut(&BusRequest<'_>, &mut Replies)) -> Option<usize> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")?;
    let line = std::str::from_utf8(&bytes[..end]).ok()?;
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let number = |word: Option<&&str>| word.and_then(|word| word.parse::<usize>().ok());
    let (reply, heads) = match words[..] {
        ["MSG", _, _, reply, _] => (reply, 0),
        ["HMSG", _, _, reply, heads, _] => (reply, number(Some(&heads))?),
        ["PING"] => {
            replies.now.extend(b"PONG\r\n");
            return Some(end + 2);
        }
        _ => return Some(end + 2),
    };
    let all = bytes.get(end + 2..)?.get(..number(words.last())? + 2)?;
    answer(&BusRequest { reply, body: all.get(heads..all.len() - 2)? }, replies);
    Some(end + 2 + all.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_requests_are_answered_where_they_ask() {
        let bytes = b"PING\r\nHMSG a 1 in.1 4 6\r\nABCDhi\r\nMSG a 1 in.2 1\r\nx\r\nMSG a 1 in.3 5\r\nab";
        let (mut replies, mut used) = (Replies::default(), 0);
        let mut echo = |request: &BusRequest<'_>, replies: &mut Replies| replies.send(request, request.body);
        while let Some(taken) = take(&bytes[used..], &mut replies, &mut echo) {
            used += taken;
        }
        assert_eq!(String::from_utf8(replies.now).unwrap(), "PONG\r\nPUB in.1 2\r\nhi\r\nPUB in.2 1\r\nx\r\n");
        assert!(bytes[used..].starts_with(b"MSG a 1 in.3"));
    }
}
