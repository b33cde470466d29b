//! Many clients read single events at the same time: each is answered, also about what was stored just before.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::{field, get, post};
use crate::support::{Folder, Server};

const CLIENTS: usize = 256;
const THREADS: usize = 8;

/// Reads one response of a connection that stays open: its status and its body.
fn answer(reader: &mut BufReader<TcpStream>) -> (u16, String) {
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap().parse().unwrap();
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (status, String::from_utf8(body).unwrap())
}

fn read_until(server: &Server, ids: &[String], ends: &AtomicBool) -> usize {
    let mut readers: Vec<_> =
        (0..CLIENTS / THREADS).map(|_| BufReader::new(TcpStream::connect(server.intake).unwrap())).collect();
    let (mut next, mut count) = (ids.iter().cycle(), 0);
    while !ends.load(Ordering::Relaxed) {
        let asked: Vec<&String> = readers
            .iter_mut()
            .map(|reader| {
                let id = next.next().unwrap();
                write!(reader.get_mut(), "GET /events/{id} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
                id
            })
            .collect();
        for (reader, id) in readers.iter_mut().zip(asked) {
            let (status, body) = answer(reader);
            assert_eq!((status, &field(&body, "id")), (200, id), "{body}");
            count += 1;
        }
    }
    count
}

#[test]
fn many_clients_read_and_find_events_just_stored() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let stored =
        |number: usize| field(&post(&server, "/ingest/event/a", "Forebay-Ack: stored\r\n", &number.to_string()), "id");
    let ids: Vec<String> = (0..100).map(stored).collect();
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        let reading: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| read_until(&server, &ids, &ends))).collect();
        for number in 100..150 {
            let (status, body) = get(&server, &format!("/events/{}", stored(number)));
            assert_eq!((status, field(&body, "payload")), (200, number.to_string()), "{body}");
        }
        ends.store(true, Ordering::Relaxed);
        let counts: Vec<usize> = reading.into_iter().map(|reading| reading.join().unwrap()).collect();
        assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    });
}
