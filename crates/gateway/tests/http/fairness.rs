//! Clients with much work, and other clients that wait for them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use gateway::{GatewayOptions, GatewayTypes};

use crate::fixture::{Client, Fixture};
use crate::steps::rules;

/// Sends requests ahead without end, and discards the responses.
fn press(stream: &TcpStream, ends: &AtomicBool) {
    let requests = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".repeat(2_000);
    thread::scope(|scope| {
        let answers = scope.spawn(|| {
            let mut piece = vec![0; 256 * 1024];
            while (&*stream).read(&mut piece).is_ok_and(|length| length > 0) {}
        });
        while !ends.load(Ordering::Relaxed) {
            (&*stream).write_all(&requests).unwrap();
        }
        stream.shutdown(std::net::Shutdown::Both).unwrap();
        answers.join().unwrap();
    });
}

#[test]
fn endless_pipelining_does_not_delay_others() {
    let fixture = Fixture::open();
    let ends = AtomicBool::new(false);
    let pressing: Vec<_> = (0..4).map(|_| TcpStream::connect(fixture.address()).unwrap()).collect();
    thread::scope(|scope| {
        pressing.iter().for_each(|stream| {
            scope.spawn(|| press(stream, &ends));
        });
        fixture.wait("they press", |counters| {
            counters.requests(gateway::RouteName::Health, gateway::StatusClass::Success) > 9_999
        });
        let mut client = fixture.connect();
        let answers: Vec<_> = (0..20)
            .map_while(|number| {
                client.post("/ingest/event", "", format!("{number}").as_bytes());
                client.try_answer().ok()
            })
            .collect();
        ends.store(true, Ordering::Relaxed);
        assert!(answers.len() == 20 && answers.iter().all(|answer| answer.status == 200), "{}", answers.len());
    });
    assert_eq!(fixture.payloads().len(), 20);
}

/// Costly work is offloaded, one piece at a time. A client with much of it waits for its own work.
#[test]
fn heavy_client_delays_others_by_one_request() {
    const BUSY: usize = 40;
    let costly = r#"[{"set": "/all", "to": "l.all(x, l.all(y, x + y < 9))"}]"#;
    let types = GatewayTypes { open: Some(rules(costly)), ..GatewayTypes::default() };
    let trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    let fixture = Fixture::with(types, GatewayOptions { trusted_proxies, ..GatewayOptions::default() });
    let event = format!("{{\"l\":[{}1]}}", "1,".repeat(300));
    let address = fixture.address();
    let post = |client: usize| {
        let mut connection = Client::connect(address);
        connection.post("/ingest/event", &format!("X-Forwarded-For: 203.0.113.{client}\r\n"), event.as_bytes());
        assert_eq!(connection.answer().status, 200);
    };
    let (answered, ends) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..BUSY {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    post(1);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        fixture.wait("all are at work", |_| answered.load(Ordering::Relaxed) > BUSY);
        // Two senders share a quota only by a chance of one in hundreds: not all of these do.
        let waited: Vec<usize> = (2..6)
            .map(|other| {
                let before = answered.load(Ordering::Relaxed);
                post(other);
                answered.load(Ordering::Relaxed) - before
            })
            .collect();
        ends.store(true, Ordering::Relaxed);
        assert!(waited.iter().any(|answered| *answered < BUSY / 4), "{waited:?} of the busy one's came first");
    });
}
