//! Connections that are lost or frozen, servers that restart, and servers that aren't NATS.

use std::time::Duration;

use nats::{Bus, BusError};
use testkit::nats::NatsServer;
use testkit::proxy::Proxy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinSet, spawn_local};

use crate::fixture::{LONG, ask, connected, echo, local, options, server, subscribed, until_answered};

const HOUR: Duration = Duration::from_hours(1);

#[test]
fn requests_at_a_killed_server_fail_and_later_ones_succeed() {
    let Some(server) = NatsServer::start() else { return };
    local(async {
        let (client, worker) = (connected(server.address()).await, connected(server.address()).await);
        echo(&worker, "echo").await;
        for round in 0..3 {
            let mut silent = subscribed(&worker, "silent", None).await;
            let mut tasks = JoinSet::new();
            for _ in 0..100 {
                let client = client.clone();
                tasks.spawn_local(async move { ask(&client, "silent", "x", HOUR).await });
            }
            for _ in 0..100 {
                silent.next().await.unwrap();
            }
            server.kill();
            while let Some(done) = tasks.join_next().await {
                assert_eq!(done.unwrap(), Err(BusError::Lost), "round {round}");
            }
            assert!(!client.is_connected());
            assert!(matches!(ask(&client, "echo", "x", HOUR).await, Err(BusError::Unavailable(_))));
            server.run();
            client.connected().await;
            // The worker subscribes again.
            until_answered(&client, "echo").await;
        }
    });
}

#[test]
fn each_request_ends_when_connections_are_cut() {
    let Some(server) = server() else { return };
    local(async {
        let proxy = Proxy::to(server.address());
        let (client, worker) = (connected(proxy.address()).await, connected(server.address()).await);
        echo(&worker, "cut").await;
        let (mut answered, mut lost) = (0, 0);
        for bytes in (0..400).step_by(80) {
            client.connected().await;
            let mut tasks = JoinSet::new();
            for number in 0..10 {
                let client = client.clone();
                tasks.spawn_local(async move { (number, ask(&client, "cut", &number.to_string(), HOUR).await) });
            }
            let fault = proxy.cut_after(bytes);
            while let Some(done) = tasks.join_next().await {
                match done.unwrap() {
                    (number, Ok(answer)) => {
                        assert_eq!(answer, format!("={number}"));
                        answered += 1;
                    }
                    (_, Err(BusError::Lost)) => lost += 1,
                    (_, Err(BusError::Unavailable(_))) => {}
                    (number, Err(error)) => panic!("{bytes}, {number}: {error}"),
                }
            }
            drop(fault);
        }
        assert!(answered > 5 && lost > 5, "{answered} {lost}");
        until_answered(&client, "cut").await;
    });
}

#[test]
fn server_that_does_not_respond_is_left() {
    let Some(server) = server() else { return };
    local(async {
        let proxy = Proxy::to(server.address());
        let (client, worker) = (connected(proxy.address()).await, connected(server.address()).await);
        echo(&worker, "frozen").await;
        until_answered(&client, "frozen").await;
        let fault = proxy.freeze_after(0);
        // With nothing to read, time passes immediately.
        tokio::time::pause();
        let begun = tokio::time::Instant::now();
        assert_eq!(ask(&client, "frozen", "x", HOUR).await, Err(BusError::Lost));
        assert!(begun.elapsed() <= Duration::from_secs(15), "{:?}", begun.elapsed());
        tokio::time::resume();
        drop(fault);
        client.connected().await;
        until_answered(&client, "frozen").await;
    });
}

#[test]
fn slow_server_gets_a_bounded_number_of_bytes() {
    let Some(server) = server() else { return };
    local(async {
        let proxy = Proxy::to(server.address());
        let client = connected(proxy.address()).await;
        let fault = proxy.freeze_after(0);
        let payload = "x".repeat(1_000_000);
        let mut sent = 0;
        loop {
            match ask(&client, "slow", &payload, Duration::from_millis(1)).await {
                Err(BusError::TimedOut) => sent += 1,
                Err(BusError::Unavailable(why)) => {
                    assert!(why.contains("slow"), "{why}");
                    break;
                }
                other => panic!("{other:?}"),
            }
            assert!(sent < 60, "the buffer has no limit");
        }
        assert!(sent >= 8, "{sent}");
        drop(fault);
        while ask(&client, "slow", "x", LONG).await != Err(BusError::NoResponders) {}
    });
}

#[test]
fn requests_without_a_connection_fail_immediately() {
    local(async {
        let bus = Bus::start(options("nats://127.0.0.1:1"));
        assert!(matches!(ask(&bus, "x", "x", HOUR).await, Err(BusError::Unavailable(_))));
        assert!(bus.publish(b"x", b"", b"").is_err());
        bus.close().await;
        bus.connected().await;
    });
}

/// Servers that aren't NATS, or stop to be. Each request ends, and the client connects again.
#[test]
fn invalid_frames_end_the_connection() {
    local(async {
        for odd in
            ["MSG a 1 -1\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n", "HMSG a 1 9 2\r\n", "-ERR 'Stale Connection'\r\n"]
        {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let bus = Bus::start(options(&format!("nats://{}", listener.local_addr().unwrap())));
            let serve = async {
                for _ in 0..2 {
                    let (mut socket, _) = listener.accept().await.unwrap();
                    socket.write_all(b"INFO {\"headers\":true,\"max_payload\":1000}\r\n").await.unwrap();
                    let (mut received, mut is_greeted) = (Vec::new(), false);
                    while !received.windows(5).any(|bytes| bytes == b"HPUB ") {
                        assert!(socket.read_buf(&mut received).await.unwrap() > 0);
                        let pings = received.windows(6).filter(|bytes| bytes == b"PING\r\n").count();
                        let pongs = if is_greeted { pings - 1 } else { pings };
                        if pings > 0 && pongs > 0 {
                            socket.write_all(b"PONG\r\n").await.unwrap();
                            is_greeted = true;
                        }
                    }
                    socket.write_all(odd.as_bytes()).await.unwrap();
                }
            };
            let ask = async {
                for _ in 0..2 {
                    bus.connected().await;
                    let outgoing =
                        nats::Outgoing { subject: &crate::fixture::subject("a"), headers: b"A: b\r\n", payload: b"x" };
                    assert_eq!(bus.request(&outgoing, HOUR).await, Err(BusError::Lost), "{odd}");
                }
            };
            tokio::join!(serve, ask);
        }
    });
}

/// Accepts a connection as NATS does, up to the response to the login.
async fn greeted(listener: &TcpListener) -> TcpStream {
    let (mut socket, _) = listener.accept().await.unwrap();
    socket.write_all(b"INFO {\"headers\":true}\r\n").await.unwrap();
    until_received(&mut socket, "PING\r\n").await;
    socket.write_all(b"PONG\r\n").await.unwrap();
    socket
}

/// Reads until a text comes, and returns all.
async fn until_received(socket: &mut TcpStream, text: &str) -> String {
    let mut received = Vec::new();
    while !received.windows(text.len()).any(|bytes| bytes == text.as_bytes()) {
        assert!(socket.read_buf(&mut received).await.unwrap() > 0);
    }
    String::from_utf8(received).unwrap()
}

#[test]
fn flood_of_pings_gets_few_responses() {
    local(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let bus = Bus::start(options(&format!("nats://{}", listener.local_addr().unwrap())));
        let mut server = greeted(&listener).await;
        until_received(&mut server, "PING\r\n").await;
        let flood = "PING\r\n".repeat(100_000) + "PONG\r\n";
        server.write_all(flood.as_bytes()).await.unwrap();
        bus.connected().await;
        let asked = spawn_local(async move { ask(&bus, "last", "x", HOUR).await });
        let received = until_received(&mut server, "PUB last").await;
        assert!((1..5_000).contains(&received.matches("PONG").count()), "{}", received.matches("PONG").count());
        drop(server);
        assert_eq!(asked.await.unwrap(), Err(BusError::Lost));
    });
}

#[test]
fn server_that_responds_to_no_ping_is_left() {
    local(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _bus = Bus::start(options(&format!("nats://{}", listener.local_addr().unwrap())));
        let mut server = greeted(&listener).await;
        tokio::time::pause();
        let talk = async {
            while server.write_all(b"PING\r\n").await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let both = async { tokio::join!(talk, greeted(&listener)) };
        tokio::time::timeout(Duration::from_mins(2), both).await.expect("it connects again");
    });
}

#[test]
fn bus_without_clones_ends_its_tasks() {
    let Some(server) = server() else { return };
    local(async {
        let client = connected(server.address()).await;
        let outgoing = nats::Outgoing { subject: &crate::fixture::subject("alone"), headers: b"", payload: b"x" };
        let mut subscription = subscribed(&client, "alone", None).await;
        let waiting = spawn_local(client.request(&outgoing, HOUR));
        subscription.next().await.unwrap();
        drop(client);
        assert_eq!(waiting.await.unwrap(), Err(BusError::Lost));
        assert!(subscription.next().await.is_none());
    });
}
