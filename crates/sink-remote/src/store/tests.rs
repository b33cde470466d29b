//! A sink and several writers, of which most hang or are gone: over real connections to small servers that answer as writers do.

mod other_versions;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use event::{EventId, Lane, Origin};
use futures_util::future::join_all;
use sink::{Record, Write};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::probe;
use crate::upstream::{ServerState, Spread, Upstream, UpstreamConfig, Writers};
use writer_protocol::{SinkInfo, version};

/// A server's response to each request.
#[derive(Clone, Copy, PartialEq)]
enum Answers {
    /// It answers as a writer of a store that accepts everything.
    Well,
    /// It reads the request and answers nothing.
    Silently,
    /// It sends heartbeats and no answer.
    WithHeartbeats,
    /// It closes the connection.
    NotAtAll,
    /// It answers as a writer of version 1 of the protocol.
    AsVersion1,
    /// It answers as a writer of version 3.
    AsVersion3,
}

/// The request lines that a server has received.
type Requests = Arc<Mutex<Vec<String>>>;

struct Stub {
    url: String,
    requests: Requests,
    task: tokio::task::JoinHandle<()>,
}

impl Stub {
    async fn start(answers: Answers) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), answers)
    }

    fn on(listener: TcpListener, answers: Answers) -> Self {
        let (url, requests) = (format!("http://{}", listener.local_addr().unwrap()), Requests::default());
        let seen = requests.clone();
        let task = tokio::spawn(async move {
            let mut open = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let seen = seen.clone();
                open.spawn(async move { drop(serve(stream, answers, &seen).await) });
            }
        });
        Self { url, requests, task }
    }

    fn got(&self, beginning: &str) -> usize {
        self.requests.lock().unwrap().iter().filter(|line| line.starts_with(beginning)).count()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(stream: TcpStream, answers: Answers, seen: &Requests) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (Vec::new(), 0);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
            head.push(line);
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        seen.lock().unwrap().push(head[0].clone());
        match answers {
            Answers::NotAtAll => return Ok(()),
            Answers::Silently => std::future::pending().await,
            Answers::WithHeartbeats => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await?;
                loop {
                    stream.write_all(b"1\r\n\n\r\n").await?;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
            Answers::AsVersion1 => stream.write_all(other_versions::of_version_1(&head[0]).as_bytes()).await?,
            Answers::AsVersion3 => stream.write_all(other_versions::OF_VERSION_3.as_bytes()).await?,
            Answers::Well => {
                let is_batch = head[0].starts_with("POST");
                let answer = if is_batch { "\"stored\"".to_owned() } else { serde_json::to_string(&info()).unwrap() };
                let head = format!(
                    "HTTP/1.1 200 OK\r\nForebay-Protocol: {}\r\nContent-Length: {}\r\n\r\n",
                    version::OWN,
                    answer.len()
                );
                stream.write_all((head + &answer).as_bytes()).await?;
            }
        }
    }
}

fn info() -> SinkInfo {
    let (warning, mark, parts, objects) = (None, None, BTreeMap::new(), None);
    SinkInfo { kind: "null".into(), reads: false, warning, mark, parts, objects }
}

fn upstream(writers: &[&Stub]) -> Upstream {
    Upstream::new(UpstreamConfig {
        name: "back".into(),
        writers: Writers::Listed(writers.iter().map(|writer| writer.url.parse().unwrap()).collect()),
        sends_to_all: false,
        spread: Spread::Lane,
        token: None,
        ca: None,
        response_timeout: Duration::from_secs(3600),
    })
}

fn sink_of(upstream: &Upstream) -> Remote {
    Remote::new(RemoteConfig {
        upstream: upstream.clone(),
        server: None,
        sink: "store".into(),
        store: "null",
        is_fenced: false,
        recognises_ids: false,
        parts: BTreeMap::new(),
        reads: false,
    })
}

fn batch(shard: u16) -> Batch {
    let mut batch = Batch::new(Lane { origin: Origin([1; 16]), shard, sink: "store".into() }, 1);
    let block = Bytes::from_static(b"type{}");
    let (id, write, event_time) = (EventId([1; 16]), Write::Insert, None);
    let (type_name, payload) = (std::str::from_utf8(&block[..4]).unwrap(), &block[4..]);
    let source = &type_name[..0];
    batch.push(&block, &Record { sequence: 1, id, type_name, source, received_at: 1, event_time, write, payload });
    batch
}

async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn hanging_writers_get_probes_and_no_batches() {
    let good = Stub::start(Answers::Well).await;
    let silent = join_all((0..10).map(|_| Stub::start(Answers::Silently))).await;
    let beating = join_all((0..10).map(|_| Stub::start(Answers::WithHeartbeats))).await;
    let hanging: Vec<&Stub> = silent.iter().chain(&beating).collect();
    let upstream = upstream(&[&hanging[..], &[&good]].concat());
    let prober = tokio::spawn(probe(upstream.clone()));
    let sink = sink_of(&upstream);
    sink.connect().await.unwrap();
    for shard in 0..64 {
        assert_eq!(sink.write(&batch(shard)).await, Ok(WriteOutcome::Committed));
    }
    until(|| silent.iter().all(|server| server.got("GET") > 1)).await;
    for shard in 0..64 {
        assert_eq!(sink.write(&batch(shard)).await, Ok(WriteOutcome::Committed));
    }
    assert_eq!((good.got("POST"), hanging.iter().map(|server| server.got("POST")).sum::<usize>()), (128, 0));
    let states = upstream.servers().iter().filter(|server| server.state() == ServerState::Available).count();
    assert!(states == 1, "{states} writers are available");
    prober.abort();
}

#[tokio::test]
async fn start_needs_the_first_good_answer_only() {
    let (good, hanging) = (Stub::start(Answers::Well).await, Stub::start(Answers::WithHeartbeats).await);
    let upstream = upstream(&[&hanging, &good]);
    let sink = sink_of(&upstream);
    // The other one sends heartbeats for an hour.
    sink.connect().await.unwrap();
    for shard in 0..16 {
        assert_eq!(sink.write(&batch(shard)).await, Ok(WriteOutcome::Committed));
    }
    assert_eq!((good.got("POST"), hanging.got("POST")), (16, 0));
}

#[tokio::test]
async fn search_probes_writers_before_it_sends_a_batch() {
    let good = Stub::start(Answers::Well).await;
    let hanging = join_all((0..8).map(|_| Stub::start(Answers::WithHeartbeats))).await;
    let sink = sink_of(&upstream(&[&hanging.iter().collect::<Vec<_>>()[..], &[&good]].concat()));
    // No survey and no prober has tried any of them.
    for shard in 0..16 {
        assert_eq!(sink.write(&batch(shard)).await, Ok(WriteOutcome::Committed));
    }
    assert_eq!((good.got("POST"), hanging.iter().map(|server| server.got("POST")).sum::<usize>()), (16, 0));
}

#[tokio::test]
async fn endless_heartbeats_are_cut_off() {
    let beating = Stub::start(Answers::WithHeartbeats).await;
    let long = upstream(&[&beating]);
    let config = UpstreamConfig { response_timeout: Duration::from_millis(500), ..long.config().clone() };
    let sink = sink_of(&Upstream::new(config));
    let error = sink.write(&batch(0)).await.unwrap_err();
    let SinkError::Unavailable(reason) = &error else { panic!("{error}") };
    assert!(reason.contains("has sent heartbeats for 500ms") && reason.contains("response_timeout"), "{reason}");
}

#[tokio::test]
async fn ejected_writer_returns_after_a_probe() {
    let (one, two) = (Stub::start(Answers::Well).await, Stub::start(Answers::NotAtAll).await);
    let upstream = upstream(&[&one, &two]);
    let prober = tokio::spawn(probe(upstream.clone()));
    let sink = sink_of(&upstream);
    sink.connect().await.unwrap();
    let state = || upstream.servers().iter().map(|server| server.state()).collect::<Vec<_>>();
    until(|| state() == [ServerState::Available, ServerState::Ejected]).await;
    assert!(upstream.servers()[1].reason().is_some() && upstream.servers()[1].last_success().is_none());
    let address = two.url.strip_prefix("http://").unwrap().to_owned();
    drop(two);
    let two = loop {
        // The task that was aborted may still listen.
        if let Ok(listener) = TcpListener::bind(&address).await {
            break Stub::on(listener, Answers::Well);
        }
        tokio::task::yield_now().await;
    };
    until(|| state() == [ServerState::Available; 2]).await;
    let used = AtomicUsize::new(0);
    for shard in 0..64 {
        sink.write(&batch(shard)).await.unwrap();
        used.store(two.got("POST"), Ordering::Relaxed);
    }
    assert!(used.into_inner() > 0, "lanes use the writer again");
    prober.abort();
}

#[tokio::test]
async fn lanes_share_one_search_for_a_writer() {
    let dead = join_all((0..2).map(|_| Stub::start(Answers::NotAtAll))).await;
    let sink = sink_of(&upstream(&dead.iter().collect::<Vec<_>>()));
    let batches: Vec<Batch> = (0..1000).map(batch).collect();
    let results = join_all(batches.iter().map(|batch| sink.write(batch))).await;
    assert!(results.iter().all(Result::is_err));
    let requests: usize = dead.iter().map(|server| server.got("")).sum();
    assert!((2..=20).contains(&requests), "1,000 lanes sent {requests} requests");
}

#[tokio::test]
async fn reads_share_one_search_for_a_writer() {
    let dead = join_all((0..2).map(|_| Stub::start(Answers::NotAtAll))).await;
    let sink = sink_of(&upstream(&dead.iter().collect::<Vec<_>>()));
    // Each has its own reader.
    let page = |number: u8| sink.read(Query::of_event(EventId([number; 16]), 1, None));
    let results = join_all((1..=8).map(page)).await;
    assert!(results.iter().all(Result::is_err));
    let requests: usize = dead.iter().map(|server| server.got("")).sum();
    assert!((2..READERS.get()).contains(&requests), "{READERS} reads sent {requests} requests");
}
