//! Clients that ask for much, and those who wait beside them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::stand::Stand;

/// Sends requests ahead without end, and throws away what is answered.
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
fn who_sends_ahead_without_end_holds_up_nobody() {
    let stand = Stand::open();
    let ends = AtomicBool::new(false);
    let pressing: Vec<_> = (0..4).map(|_| TcpStream::connect(stand.address()).unwrap()).collect();
    thread::scope(|scope| {
        pressing.iter().for_each(|stream| {
            scope.spawn(|| press(stream, &ends));
        });
        stand.wait("they press", |counters| {
            counters.requests(gateway::RouteName::Health, gateway::StatusClass::Success) > 9_999
        });
        let mut client = stand.connect();
        let answers: Vec<_> = (0..20)
            .map_while(|number| {
                client.post("/ingest/event", "", format!("{number}").as_bytes());
                client.try_answer().ok()
            })
            .collect();
        ends.store(true, Ordering::Relaxed);
        assert!(answers.len() == 20 && answers.iter().all(|answer| answer.status == 200), "{}", answers.len());
    });
    assert_eq!(stand.payloads().len(), 20);
}
