//! The client of HTTP/1.1 against scripted servers: failures, reuse of connections, and limits.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by it")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use net::http_client::{HttpClient, HttpFailureKind, HttpOptions, RequestBody, empty, full};
use testkit::ports::free_address;

/// A server whose connections are each given to `serve`, with their number from 1.
fn server(serve: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, count) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let (counted, serve) = (Arc::clone(&count), Arc::new(serve));
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (serve, number) = (Arc::clone(&serve), counted.fetch_add(1, Ordering::SeqCst) + 1);
            std::thread::spawn(move || serve(number, client.unwrap()));
        }
    });
    (address, count)
}

/// Reads a request to the end of its head and of a body of known length; none where the client closed.
fn read(client: &mut TcpStream) -> Option<String> {
    let (mut request, mut byte) = (Vec::new(), [0]);
    while !request.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte).ok()?;
        request.extend_from_slice(&byte);
    }
    let mut text = String::from_utf8(request).unwrap().to_ascii_lowercase();
    let length =
        text.split_once("content-length: ").map_or(0, |(_, rest)| rest.lines().next().unwrap().parse().unwrap());
    let mut body = vec![0; length];
    client.read_exact(&mut body).ok()?;
    text += std::str::from_utf8(&body).unwrap();
    Some(text)
}

fn answer_all(mut client: TcpStream, answer: &str) {
    while read(&mut client).is_some() {
        if client.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn client(silence_max: Duration) -> HttpClient {
    HttpClient::new(HttpOptions {
        ca: None,
        connect_timeout: Duration::from_secs(20),
        silence_max,
        waits_for_retry_after: true,
    })
}

fn patient() -> HttpClient {
    client(Duration::from_secs(60))
}

fn request(address: SocketAddr, body: RequestBody) -> http::Request<RequestBody> {
    http::Request::post(format!("http://{address}/a?b=c")).body(body).unwrap()
}

const FIVE: &str = "HTTP/1.1 200 OK\r\nX-Said: so\r\nContent-Length: 5\r\n\r\nhello";

#[tokio::test]
async fn connection_is_reused_after_response_is_read() {
    let (address, connections) = server(|_, client| answer_all(client, FIVE));
    let client = patient();
    for _ in 0..5 {
        let answer = client.send(request(address, full("body"))).await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.headers()["x-said"].as_bytes()), (200, &b"so"[..]));
        assert_eq!(answer.bytes(5).await.unwrap(), "hello");
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
    // A connection whose response was dropped midway can't be reused, and neither can closed ones.
    drop(client.send(request(address, empty())).await.unwrap());
    client.send(request(address, empty())).await.unwrap().bytes(5).await.unwrap();
    client.close_idle();
    client.send(request(address, empty())).await.unwrap().bytes(5).await.unwrap();
    assert_eq!(connections.load(Ordering::SeqCst), 3);
}

/// Its runtime, and no other, sees that it was closed, or that there is something to read.
#[tokio::test]
async fn connection_is_reused_by_the_opening_thread() {
    let (address, connections) = server(|_, client| answer_all(client, FIVE));
    let client = patient();
    client.send(request(address, empty())).await.unwrap().bytes(5).await.unwrap();
    let elsewhere = client.clone();
    let other = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { elsewhere.send(request(address, empty())).await.unwrap().bytes(5).await.unwrap() })
    });
    assert_eq!(other.join().unwrap(), "hello");
    assert_eq!(connections.load(Ordering::SeqCst), 2);
    client.send(request(address, empty())).await.unwrap().bytes(5).await.unwrap();
    assert_eq!(connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn connection_closed_by_server_is_replaced() {
    let (closed, was_closed) = std::sync::mpsc::channel();
    let (address, connections) = server(move |_, mut client| {
        read(&mut client).unwrap();
        client.write_all(FIVE.as_bytes()).unwrap();
        drop(client);
        let _ = closed.send(());
    });
    let client = patient();
    for number in 1..=3 {
        assert_eq!(client.send(request(address, empty())).await.unwrap().bytes(5).await.unwrap(), "hello");
        was_closed.recv().unwrap();
        assert_eq!(connections.load(Ordering::SeqCst), number);
    }
}

#[tokio::test]
async fn request_has_host_and_length_and_is_streamed() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let (address, _) = server(move |_, mut client| {
        sender.send(read(&mut client).unwrap()).unwrap();
        client
            .write_all(b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
            .unwrap();
        let _ = read(&mut client);
    });
    let body = http_body_util::Full::new(Bytes::from("body")).map_err(|never| match never {}).boxed_unsync();
    let mut answer = patient().send(request(address, body)).await.unwrap();
    let mut whole = Vec::new();
    while let Some(chunk) = answer.chunk().await.unwrap() {
        whole.extend_from_slice(&chunk);
    }
    assert_eq!((answer.status().as_u16(), whole.as_slice()), (201, &b"abcde"[..]));
    let received = receiver.recv().unwrap();
    assert!(received.starts_with("post /a?b=c http/1.1\r\n") && received.ends_with("\r\n\r\nbody"), "{received}");
    assert!(
        received.contains(&format!("host: {address}\r\n")) && received.contains("content-length: 4\r\n"),
        "{received}"
    );
}

#[tokio::test]
async fn failures_are_distinguished() {
    let away = free_address();
    let failure = patient().send(request(away, empty())).await.map(drop).unwrap_err();
    assert!(failure.is_unsent() && matches!(failure.kind, HttpFailureKind::Connect(_)), "{failure}");

    let (address, _) = server(|_, mut client| drop(read(&mut client)));
    let failure = patient().send(request(address, empty())).await.map(drop).unwrap_err();
    assert!(!failure.is_unsent() && matches!(failure.kind, HttpFailureKind::Broken(_)), "{failure}");
    assert!(failure.to_string().contains(&address.to_string()) && !failure.to_string().contains("b=c"), "{failure}");

    let (address, _) = server(|_, mut client| {
        let _ = read(&mut client);
        let _ = read(&mut client);
    });
    let failure = client(Duration::from_millis(50)).send(request(address, empty())).await.map(drop).unwrap_err();
    assert!(!failure.is_unsent() && matches!(failure.kind, HttpFailureKind::Silent(_)), "{failure}");

    for answer in [FIVE, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"] {
        let (address, _) = server(move |_, client| answer_all(client, answer));
        let failure = patient().send(request(address, empty())).await.unwrap().bytes(4).await.unwrap_err();
        assert!(matches!(failure.kind, HttpFailureKind::TooLong(4)), "{failure}");
    }

    let (address, _) =
        server(|_, client| answer_all(client, "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"));
    assert_eq!(patient().send(request(address, empty())).await.unwrap().status().as_u16(), 302, "nothing is followed");

    let relative = http::Request::get("/a").body(empty()).unwrap();
    assert!(matches!(patient().send(relative).await.map(drop).unwrap_err().kind, HttpFailureKind::Url));
}

#[tokio::test]
async fn truncated_response_fails_and_silent_body_times_out() {
    let (address, _) = server(|_, mut client| {
        let _ = read(&mut client);
        let _ = client.write_all(&FIVE.as_bytes()[..FIVE.len() - 1]);
    });
    let failure = patient().send(request(address, empty())).await.unwrap().bytes(9).await.unwrap_err();
    assert!(matches!(failure.kind, HttpFailureKind::Broken(_)), "{failure}");
    let (address, _) = server(|_, mut client| {
        let _ = read(&mut client);
        let _ = client.write_all(&FIVE.as_bytes()[..FIVE.len() - 1]);
        let _ = read(&mut client);
    });
    // Long enough for the head, however slow the machine is.
    let answer = client(Duration::from_secs(2)).send(request(address, empty())).await.unwrap();
    let failure = answer.bytes(9).await.unwrap_err();
    assert!(matches!(failure.kind, HttpFailureKind::Silent(_)), "{failure}");
}

/// A server that sends `first`, and then `piece` after each pause, without end.
fn endless(first: &'static str, piece: &'static str, pause: Duration) -> SocketAddr {
    let (address, _) = server(move |_, mut client| {
        let _ = read(&mut client);
        let mut sent = client.write_all(first.as_bytes());
        while sent.is_ok() {
            std::thread::sleep(pause);
            sent = client.write_all(piece.as_bytes());
        }
    });
    address
}

#[tokio::test]
async fn interim_responses_extend_no_deadline() {
    const INTERIM: &str = "HTTP/1.1 100 Continue\r\n\r\n";
    let often = Duration::from_millis(50);
    for (first, piece) in [
        (INTERIM, INTERIM),
        ("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", "HTTP/1.1 102 Processing\r\n\r\n"),
        ("HTTP/1.1 200 OK\r\n", "A: b\r\n"),
        ("HTTP/1.1 200 OK\r\nA: ", "b"),
    ] {
        let begun = std::time::Instant::now();
        let address = endless(first, piece, often);
        let failure = client(Duration::from_secs(1)).send(request(address, full("body"))).await.map(drop).unwrap_err();
        assert!(matches!(failure.kind, HttpFailureKind::Silent(_)), "{failure}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?} for {piece:?}", begun.elapsed());
    }
    // A few before the response are fine.
    let answer: String = INTERIM.repeat(3) + FIVE;
    let (address, _) = server(move |_, client| answer_all(client, &answer));
    assert_eq!(patient().send(request(address, empty())).await.unwrap().bytes(5).await.unwrap(), "hello");
}

#[tokio::test]
async fn bytes_before_the_response_are_bounded() {
    // As fast as they can be sent.
    const MANY: &str = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n";
    let address = endless(MANY, MANY, Duration::ZERO);
    let failure = patient().send(request(address, empty())).await.map(drop).unwrap_err();
    assert!(matches!(failure.kind, HttpFailureKind::Broken(_)), "{failure}");
    assert!(failure.to_string().contains("more than 65536 bytes and no final response"), "{failure}");
    assert!(!failure.is_unsent());
}

#[tokio::test]
async fn other_protocol_is_no_response() {
    let (address, _) = server(|_, client| {
        answer_all(client, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
    });
    let failure = patient().send(request(address, full("body"))).await.map(drop).unwrap_err();
    assert!(matches!(failure.kind, HttpFailureKind::Interim(status) if status == 101), "{failure}");
    assert!(!failure.is_unsent(), "what it did isn't known");
}

#[tokio::test]
async fn trickling_body_is_abandoned() {
    let often = Duration::from_millis(50);
    for (first, piece, is_slow) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", "b", true),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nb\r\n", true),
        // Neither is a frame of the body.
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", "b", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "A: b\r\n", false),
    ] {
        let begun = std::time::Instant::now();
        let answer = client(Duration::from_secs(1)).send(request(endless(first, piece, often), empty())).await.unwrap();
        let failure = answer.bytes(1_000_000).await.unwrap_err();
        let is_told = if is_slow {
            matches!(failure.kind, HttpFailureKind::TooSlow)
        } else {
            matches!(failure.kind, HttpFailureKind::Silent(_))
        };
        assert!(is_told && begun.elapsed() < Duration::from_secs(10), "{failure} after {:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn server_reading_byte_by_byte_is_abandoned() {
    let (address, _) = server(|_, mut client| {
        let mut byte = [0; 16];
        while client.read(&mut byte).is_ok_and(|count| count > 0) {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    // More than all buffers hold.
    let body = vec![b'x'; 64 * 1024 * 1024];
    let begun = std::time::Instant::now();
    let failure = client(Duration::from_secs(1)).send(request(address, full(body))).await.map(drop).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(20), "{failure} after {:?}", begun.elapsed());
}

/// Other requests of the same thread continue during this time.
#[tokio::test]
async fn endless_interim_responses_block_no_other_work() {
    const MANY: &str = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n";
    let (bad, (good, _)) = (endless(MANY, MANY, Duration::ZERO), server(|_, client| answer_all(client, FIVE)));
    let (of_bad, of_good) = (client(Duration::from_secs(60)), patient());
    let attacked = async {
        for _ in 0..20 {
            of_bad.send(request(bad, empty())).await.map(drop).unwrap_err();
        }
    };
    let served = async {
        for _ in 0..20 {
            of_good.send(request(good, empty())).await.unwrap().bytes(5).await.unwrap();
        }
    };
    let both = async { tokio::join!(attacked, served) };
    tokio::time::timeout(Duration::from_secs(30), both).await.unwrap();
}

#[tokio::test]
async fn retry_after_delays_requests_that_can_wait() {
    let (address, connections) = server(|number, mut client| {
        let _ = read(&mut client);
        let answer = if number == 1 {
            let at = "Wed, 21 Oct 2015 07:28:02 GMT\r\nDate: Wed, 21 Oct 2015 07:28:00 GMT";
            format!("HTTP/1.1 503 Slow Down\r\nConnection: close\r\nRetry-After: {at}\r\nContent-Length: 0\r\n\r\n")
        } else {
            FIVE.to_owned()
        };
        let _ = client.write_all(answer.as_bytes());
    });
    let (waits, begun) = (patient(), std::time::Instant::now());
    let (busy, _) = server(|_, mut client| {
        let _ = read(&mut client);
        let long = "HTTP/1.1 503 Slow Down\r\nConnection: close\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n";
        let _ = client.write_all(long.as_bytes());
    });
    assert_eq!(waits.send(request(address, empty())).await.unwrap().status().as_u16(), 503);
    assert!(tokio::time::timeout(Duration::from_millis(100), waits.send(request(address, empty()))).await.is_err());
    assert_eq!(connections.load(Ordering::SeqCst), 1);
    let reads = HttpClient::new(HttpOptions {
        ca: None,
        connect_timeout: Duration::from_secs(20),
        silence_max: Duration::from_secs(60),
        waits_for_retry_after: false,
    });
    for _ in 0..2 {
        let answered = tokio::time::timeout(Duration::from_mins(1), reads.send(request(busy, empty()))).await;
        let answered = answered.expect("a client that can't wait sends the request immediately").unwrap();
        assert_eq!(answered.status().as_u16(), 503);
    }
    assert_eq!(waits.send(request(address, empty())).await.unwrap().status().as_u16(), 200);
    assert!(begun.elapsed() >= Duration::from_millis(1_900));
}
