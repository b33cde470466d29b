//! The client against servers with answers that etcd never sends. The tests of the binary use a real etcd.

use std::time::Duration;

use net::http_client::Endpoint;
use sink_remote::{EtcdAccount, EtcdConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::{Client, EtcdError};

const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// A server's action on a connection after it has read the request.
#[derive(Clone)]
enum Then {
    /// Sends this, and closes.
    Close(String),
    /// Sends this, and then stays silent.
    Hold(String),
    /// Sends the first part, and then repeats the second part without end.
    Repeat(String, String),
}

/// A server with these actions for its connections, one after the other, of which it repeats the last ones; and the requests that it receives.
async fn server(ways: Vec<Then>) -> (Endpoint, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let (requests, received) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let last = ways.last().cloned();
        let mut ways = ways.into_iter();
        while let Ok((stream, _)) = listener.accept().await {
            let Some(way) = ways.next().or_else(|| last.clone()) else { return };
            tokio::spawn(answer(stream, way, requests.clone()));
        }
    });
    (endpoint, received)
}

async fn answer(mut stream: TcpStream, way: Then, requests: mpsc::UnboundedSender<String>) {
    let mut request = Vec::new();
    // Every request has a body, and it ends with a brace.
    while !request.ends_with(b"}") {
        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let _ = requests.send(String::from_utf8(request).unwrap());
    match way {
        Then::Close(text) => drop(stream.write_all(text.as_bytes()).await),
        Then::Hold(text) => {
            let _ = stream.write_all(text.as_bytes()).await;
            std::future::pending().await
        }
        Then::Repeat(text, more) => {
            let _ = stream.write_all(text.as_bytes()).await;
            while stream.write_all(more.as_bytes()).await.is_ok() {}
        }
    }
}

fn whole(status: &str, body: &str) -> Then {
    let length = body.len();
    Then::Close(format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"))
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn client_of(endpoints: Vec<Endpoint>, account: Option<EtcdAccount>) -> Client {
    Client::new(EtcdConfig { endpoints, prefix: "/forebay/writers/".to_owned(), account, ca: None })
}

async fn client(ways: Vec<Then>) -> Client {
    client_of(vec![server(ways).await.0], None)
}

#[tokio::test]
async fn foreign_answers_are_errors() {
    for (way, words) in [
        (whole("200 OK", "no JSON"), "does not respond like etcd"),
        (whole("200 OK", "{\"kvs\": [{\"value\": 7}]}"), "does not respond like etcd"),
        (whole("404 Not Found", "404 page not found"), "run etcd 3.4 or later"),
        (whole("503 Service Unavailable", "{\"message\": \"no leader\"}"), "503 Service Unavailable: no leader"),
        (whole("403 Forbidden", "{\"message\": \"permission denied\", \"code\": 7}"), "permission denied"),
        (whole("500 Oops", "{\"error\": {\"message\": \"a stream's\"}}"), "a stream's"),
        (Then::Close("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{\"kvs".to_owned()), "the connection broke"),
        (Then::Close(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 5 << 20)), "more than 4194304 bytes"),
        (Then::Repeat(HEAD.to_owned(), chunk(&" ".repeat(60_000))), "more than 4194304 bytes"),
    ] {
        let error = client(vec![way]).await.entries().await.unwrap_err().to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn silent_or_endless_server_times_out() {
    for way in [Then::Hold(String::new()), Then::Hold(format!("{HEAD}{}", chunk("{\"kvs\":")))] {
        let mut client = client(vec![way]).await;
        let error = client.entries().await.unwrap_err().to_string();
        assert!(error.contains("within"), "{error}");
        assert!(matches!(client.watch().await, Err(EtcdError::NoAnswer(_) | EtcdError::NotEtcd(_))));
    }
}

#[tokio::test]
async fn values_that_are_not_base64_are_omitted() {
    let body = "{\"kvs\": [{\"value\": \"eA==\"}, {\"value\": \"=\"}, {}], \"more\": true, \"new\": 1}";
    let entries = client(vec![whole("200 OK", body)]).await.entries().await.unwrap();
    assert_eq!((entries.values, entries.has_more), (vec![(String::new(), b"x".to_vec()), Default::default()], true));
    assert!(client(vec![whole("200 OK", "{}")]).await.entries().await.unwrap().values.is_empty());
}

#[tokio::test]
async fn a_lease_without_time_left_is_unknown() {
    for (body, is_known) in [
        ("{\"result\": {\"ID\": \"7\", \"TTL\": \"5\"}}", true),
        ("{\"result\": {\"ID\": \"7\"}}", false),
        ("{\"result\": {\"ID\": \"7\", \"TTL\": \"-1\"}}", false),
        ("{\"result\": {\"ID\": \"7\", \"TTL\": \"many\"}}", false),
    ] {
        let granted = whole("200 OK", "{\"ID\": \"7\", \"TTL\": \"5\"}");
        let mut client = client(vec![granted, whole("200 OK", body)]).await;
        let lease = client.grant(Duration::from_secs(5)).await.unwrap();
        assert_eq!(client.keep_alive(&lease).await.unwrap(), is_known, "{body}");
    }
}

#[tokio::test]
async fn member_that_answered_is_asked_first() {
    let (down, mut asked_first) = server(vec![whole("503 Service Unavailable", "{\"message\": \"no leader\"}")]).await;
    let (up, _) = server(vec![whole("200 OK", "{}")]).await;
    let mut client = client_of(vec![down, up], None);
    for _ in 0..3 {
        client.entries().await.unwrap();
    }
    assert!(asked_first.recv().await.is_some());
    assert!(asked_first.try_recv().is_err(), "it was asked once");
}

#[tokio::test]
async fn unknown_token_is_replaced_once() {
    let account = EtcdAccount { user: "ann".to_owned(), password: "secret".to_owned() };
    let token = |token: &str| whole("200 OK", &format!("{{\"token\": \"{token}\"}}"));
    let invalid = whole("401 Unauthorized", "{\"message\": \"invalid auth token\", \"code\": 16}");
    let ways = vec![token("one"), whole("200 OK", "{}"), invalid.clone(), token("two"), whole("200 OK", "{}"), invalid];
    let (endpoint, mut requests) = server(ways).await;
    let mut client = client_of(vec![endpoint], Some(account));
    client.entries().await.unwrap();
    client.entries().await.unwrap();
    // Every later answer is a rejection, also of the new token.
    assert!(matches!(client.entries().await, Err(EtcdError::Refused { .. })));
    let mut shown = Vec::new();
    while let Ok(request) = requests.try_recv() {
        let line =
            request.lines().find_map(|line| line.to_lowercase().strip_prefix("authorization: ").map(str::to_owned));
        shown.push(line.unwrap_or_else(|| "none".to_owned()));
    }
    assert_eq!(shown, ["none", "one", "one", "none", "two", "two", "none"]);
}

#[tokio::test]
async fn user_without_permission_requests_no_other_token() {
    let account = EtcdAccount { user: "ann".to_owned(), password: "secret".to_owned() };
    let token = whole("200 OK", "{\"token\": \"one\"}");
    let denied = whole("403 Forbidden", "{\"message\": \"permission denied\", \"code\": 7}");
    let (endpoint, mut requests) = server(vec![token, denied]).await;
    let mut client = client_of(vec![endpoint], Some(account));
    for _ in 0..3 {
        assert!(client.entries().await.is_err_and(|error| error.is_refusal()));
    }
    let mut count = 0;
    while requests.try_recv().is_ok() {
        count += 1;
    }
    assert_eq!(count, 4, "one for the token");
}

#[tokio::test]
async fn user_is_ignored_when_authentication_is_disabled() {
    let account = EtcdAccount { user: "ann".to_owned(), password: "secret".to_owned() };
    let disabled = whole("400 Bad Request", "{\"message\": \"authentication is not enabled\", \"code\": 9}");
    let (endpoint, _) = server(vec![disabled, whole("200 OK", "{}")]).await;
    assert!(client_of(vec![endpoint], Some(account)).entries().await.is_ok());
}

const CREATED: &str = "{\"result\": {\"created\": true}}\n";

#[tokio::test]
async fn unstarted_watch_is_an_error() {
    for first in
        ["{\"result\": {\"created\": true, \"canceled\": true}}\n", "{\"error\": {}}\n", "{\"result\": {\"crea", "7"]
    {
        let client = client(vec![Then::Hold(format!("{HEAD}{}", chunk(first)))]).await;
        assert!(client.watch().await.is_err(), "{first}");
    }
    assert!(client(vec![whole("401 Unauthorized", "{}")]).await.watch().await.is_err());
    assert!(client(vec![Then::Close(HEAD.to_owned())]).await.watch().await.is_err());
}

#[tokio::test]
async fn watch_reports_any_message_and_ends_with_its_connection() {
    let begun = format!("{HEAD}{}", chunk(CREATED));
    let long = Duration::from_secs(3600);
    let ways = [Then::Hold(begun.clone() + &chunk("no JSON")), Then::Repeat(begun.clone(), chunk(&"x".repeat(60_000)))];
    for way in ways {
        let mut watch = client(vec![way]).await.watch().await.unwrap();
        assert!(watch.wait(long).await);
    }
    let mut watch = client(vec![Then::Close(begun)]).await.watch().await.unwrap();
    assert!(!watch.wait(long).await);
}

#[tokio::test]
async fn a_quiet_watch_ends_after_a_minute() {
    let client = client(vec![Then::Hold(format!("{HEAD}{}", chunk(CREATED)))]).await;
    let mut watch = client.watch().await.unwrap();
    tokio::time::pause();
    let mut seconds = 0;
    while watch.wait(Duration::from_secs(5)).await {
        seconds += 5;
    }
    assert_eq!(seconds, 55);
}
