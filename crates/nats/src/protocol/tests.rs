//! Tests of encoding and parsing.

use testkit::fuzz::{self, Corpus};

use super::*;

#[test]
fn messages_are_encoded_with_and_without_headers() {
    let mut output = Vec::new();
    command(&mut output, &["SUB", "a", "1"]);
    publish(&mut output, b"a.b", b"r", b"", b"x\r\n");
    publish(&mut output, b"a.b", b"", b"K: v\r\n", b"x");
    publish(&mut output, b"a", b"", b"", &[]);
    publish(&mut output, b"a", b"", b"", &[b'x'; 120]);
    let long = format!("PUB a 120\r\n{}\r\n", "x".repeat(120));
    assert_eq!(
        String::from_utf8(output).unwrap(),
        "SUB a 1\r\nPUB a.b r 3\r\nx\r\n\r\nHPUB a.b 18 19\r\nNATS/1.0\r\nK: v\r\n\r\nx\r\nPUB a 0\r\n\r\n".to_owned()
            + &long
    );
}

#[test]
fn begun_message_says_its_length() {
    for (text, expected) in [
        ("MSG a.b 7 5\r\n", Some((7, "a.b", 13 + 5 + 2))),
        ("HMSG a 1 r 12 100\r\nNATS", Some((1, "a", 19 + 100 + 2))),
        ("MSG a 7 5", None),
        ("PING\r\n", None),
        ("MSG a 7 99999999999\r\n", None),
        ("", None),
    ] {
        let expected =
            expected.map(|(subscription, subject, length)| Begun { subscription, subject: subject.as_bytes(), length });
        assert_eq!(begun(text.as_bytes()), expected, "{text}");
    }
}

/// A message's subscription, subject, reply, headers and payload.
type Parts<'a> = (u64, &'a [u8], &'a [u8], &'a [u8], &'a [u8]);

fn parts(message: &Message) -> Parts<'_> {
    let headers = &message.frame[message.headers.clone()];
    (message.subscription, message.subject(), message.reply().unwrap_or_default(), headers, message.payload())
}

fn expect_incomplete(text: &[u8]) {
    for end in 0..text.len() {
        assert!(matches!(frame(&text[..end]), Ok(None)), "{} at {end}", text.escape_ascii());
    }
}

#[test]
fn frame_is_parsed_only_when_complete() {
    for (text, expected) in [
        ("INFO {\"a\": 1} \r\n", Frame::Info("{\"a\": 1}".into())),
        ("PING\r\n", Frame::Ping),
        ("pong\r\n", Frame::Pong),
        ("-ERR 'Stale Connection'\r\n", Frame::Error("Stale Connection".into())),
    ] {
        expect_incomplete(text.as_bytes());
        assert_eq!(frame(format!("{text}PI").as_bytes()).unwrap(), Some((expected, text.len())), "{text}");
    }
    let messages: [(&[u8], Parts<'_>); 6] = [
        (b"MSG a.b 1 3\r\n\r\nx\r\n", (1, b"a.b", b"", b"", b"\r\nx")),
        (b"MSG a.b 18446744073709551615 reply 0\r\n\r\n", (u64::MAX, b"a.b", b"reply", b"", b"")),
        (b"MSG  a\t1  0 \r\n\r\n", (1, b"a", b"", b"", b"")),
        (b"MSG \xff\xfe 2 1\r\n\n\r\n", (2, b"\xff\xfe", b"", b"", b"\n")),
        (b"HMSG a 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", (1, b"a", b"", b"NATS/1.0 503\r\n\r\n", b"")),
        // The server doesn't check headers: their reader does.
        (b"HMSG a 1 r 2 3\r\nabx\r\n", (1, b"a", b"r", b"ab", b"x")),
    ];
    for (text, expected) in messages {
        expect_incomplete(text);
        let parsed = frame(&[text, b"PI"].concat()).unwrap();
        let Some((Frame::Message(message), length)) = parsed else { panic!("{}", text.escape_ascii()) };
        assert_eq!((parts(&message), length), (expected, text.len()), "{}", text.escape_ascii());
        let payload = message.payload().to_vec();
        assert_eq!(message.into_payload(), payload);
    }
}

#[test]
fn invalid_frame_fails_immediately() {
    let long = vec![b'I'; LINE_BYTES_MAX];
    for wrong in [
        &b"HTTP/1.1 400\r\n"[..],
        b"\r\n",
        b"PING\n",
        b"+OK\r\n",
        b"MSG a 1 99999999999\r\n",
        b"MSG a 1 99999999999999999999999999999\r\n",
        b"MSG a 1 -2\r\n",
        b"MSG a 1 +2\r\n",
        b"MSG a x 0\r\n\r\n",
        b"MSG a 1\r\n",
        b"MSG a 1 r s 2\r\n",
        b"MSG a 1 1\r\nxyz",
        b"MSG a 1 1\r\nx\n\n",
        b"HMSG a 1 3 2\r\nab\r\n",
        b"HMSG a 1 -1 2\r\nab\r\n",
        b"HMSG a 1 2\r\nab\r\n",
        b"HMSG a 1 r s 2 2\r\nab\r\n",
        b"\xff\r\n",
        &long,
    ] {
        assert!(
            matches!(frame(wrong), Err(Error::Unexpected(_))),
            "{:?}",
            &wrong[..wrong.len().min(20)].escape_ascii()
        );
    }
}

#[test]
fn fuzz_nats() {
    let samples: [&[u8]; 6] = [
        b"INFO {\"server_id\":\"A\",\"max_payload\":1048576,\"headers\":true,\"connect_urls\":[\"a:1\"]}\r\nPONG\r\n",
        b"MSG shop.orders.get 12 _INBOX.0123.4 5\r\nhello\r\nPING\r\n",
        b"HMSG _INBOX.0123.4 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
        b"HMSG a 1 r 35 37\r\nNATS/1.0\r\nForebay-Status: 201\r\n\r\n{}\r\n",
        b"-ERR 'Permissions Violation for Publish to \"a\"'\r\n",
        b"MSG a 1 0\r\n\r\nMSG a 1 0\r\n\r\n",
    ];
    let tokens: [&[u8]; 16] = [
        b"\r\n",
        b"\r",
        b"\n",
        b" ",
        b"\t",
        b"MSG ",
        b"HMSG ",
        b"-1",
        b"0",
        b"18446744073709551616",
        b"67108865",
        b"NATS/1.0",
        b":",
        b"PING\r\n",
        b"\xff",
        b"-ERR ",
    ];
    fuzz::run("nats", Corpus { samples: &samples, tokens: &tokens }, |input| {
        let (mut at, mut outcomes) = (0, Vec::new());
        loop {
            match frame(&input[at..]) {
                Ok(Some((parsed, length))) => {
                    assert!(length > 0 && at + length <= input.len());
                    // Fewer bytes than the frame has are incomplete, never another frame.
                    assert!(matches!(frame(&input[at..at + length - 1]), Ok(None)));
                    outcomes.push(outcome(&parsed));
                    at += length;
                }
                Ok(None) => break,
                Err(error) => {
                    outcomes.push(error.to_string());
                    break;
                }
            }
        }
        outcomes
    });
}

/// The kind of a frame. A message's parts are within it, and its headers can be encoded again.
fn outcome(parsed: &Frame) -> String {
    let Frame::Message(message) = parsed else { return format!("{parsed:?}").chars().take(5).collect() };
    let (_, subject, reply, block, payload) = parts(message);
    assert!(!subject.iter().chain(reply).any(u8::is_ascii_whitespace));
    let Ok(headers) = message.headers() else { return "malformed".to_owned() };
    let lines: Vec<u8> = headers.iter().flat_map(|(name, value)| [name, b": ", value, b"\r\n"].concat()).collect();
    let mut sent = Vec::new();
    publish(&mut sent, subject, reply, &lines, payload);
    // A published message with a subscription's id is a received one.
    let verb = if lines.is_empty() { "PUB " } else { "HPUB " };
    let received =
        [verb.replace("PUB", "MSG").as_bytes(), subject, b" 1", &sent[verb.len() + subject.len()..]].concat();
    let Ok(Some((Frame::Message(again), length))) = frame(&received) else { panic!("{}", received.escape_ascii()) };
    let same = again.headers().unwrap();
    assert!(length == received.len() && again.payload() == payload && again.reply() == message.reply());
    assert!(same.iter().eq(headers.iter()));
    format!("{} {} {:?} {}", lines.is_empty(), reply.is_empty(), headers.status(), block.is_empty())
}
