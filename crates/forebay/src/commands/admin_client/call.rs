//! One request to the admin port, and its answer.

use std::io::{self, Read, Write};
use std::time::Duration;

use load::{Server, Wire};

/// The server is on this machine, or near.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// The largest response that is short.
const SHORT_BYTES_MAX: u64 = 64 * 1024;

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// What is asked of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) body: &'a [u8],
}

/// Sends a request, and waits for its answer as long as that takes.
pub(crate) fn call(server: &Server, call: Call<'_>, token: Option<&str>) -> io::Result<Answer> {
    exchange(server.connect(CONNECT_MAX, None)?, u64::MAX, server, call, token)
}

/// Sends a request without a token. Each step of it may take this long, and the response is short.
pub(crate) fn call_within(server: &Server, call: Call<'_>, step_max: Duration) -> io::Result<Answer> {
    exchange(server.connect(step_max, Some(step_max))?, SHORT_BYTES_MAX, server, call, None)
}

fn exchange(
    mut wire: Wire,
    answer_max: u64,
    server: &Server,
    call: Call<'_>,
    token: Option<&str>,
) -> io::Result<Answer> {
    let Call { method, target, body } = call;
    let authorization = token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: {}\r\n{authorization}Connection: close\r\nContent-Length: {}\r\n\r\n",
        server.target().authority(),
        body.len()
    );
    wire.write_all(head.as_bytes())?;
    wire.write_all(body)?;
    wire.flush()?;
    let mut text = String::new();
    wire.take(answer_max).read_to_string(&mut text)?;
    parse(&text).ok_or_else(|| io::Error::other("it broke off its answer, or doesn't speak HTTP"))
}

/// Reads an answer that must be there as a whole.
fn parse(text: &str) -> Option<Answer> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    let mut fields = lines.filter_map(|line| line.split_once(':'));
    let (_, length) = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    let length: usize = length.trim().parse().ok()?;
    (body.len() == length).then(|| Answer { status, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_an_answer_is_none() {
        let whole = "HTTP/1.1 404 Not Found\r\nX: y\r\ncontent-length: 3\r\n\r\nno\n";
        let answer = parse(whole).unwrap();
        assert_eq!((answer.status, &*answer.body), (404, "no\n"));
        for end in 0..whole.len() {
            assert!(parse(&whole[..end]).is_none(), "{end}");
        }
        assert!(parse("SSH-2.0\r\n\r\n").is_none());
    }
}
