//! Batches of which nobody knows what became of them, and whose index is another one by the time that they come again.

use serde_json::Value;
use sink::Report;
use sink::elasticsearch::{Target, Template};

use crate::events::{deliver, id, plain};
use crate::stand::{Stand, server};

/// The day on which the events of these tests were received.
const DAY: &str = "2025-10-09";

#[tokio::test]
async fn what_comes_again_on_another_day_meets_its_first_copy() {
    let Some(server) = server() else { return };
    let mut stand = Stand::new(server);
    stand.config.index = format!("{}-{{day}}", stand.index).parse().unwrap();
    let sink = stand.sink();
    sink.connect().await.unwrap();
    // The store takes them, and its answer is lost.
    let cut = stand.proxy.cut_after(10);
    let batch = plain(0, 1, 100);
    assert!(sink.write(&batch).await.is_err());
    drop(cut);
    assert_eq!(stand.documents().len(), 100);
    // By now, long after the day, another index would be the newest one.
    deliver(&sink, &batch).await;
    let index = format!("{}-{DAY}", stand.index);
    let documents = stand.documents();
    assert_eq!(documents.len(), 100);
    assert!(documents.iter().all(|(stored_in, ..)| *stored_in == index), "{documents:?}");
}

/// This is the limit that the manual names: within the index behind a data stream an event is stored once.
#[tokio::test]
async fn what_comes_again_behind_a_rollover_of_a_data_stream_is_stored_again() {
    let Some(server) = server() else { return };
    let mut stand = Stand::dynamic(server);
    let stream = format!("{}-stream", stand.index);
    let body = format!(r#"{{"index_patterns": ["{stream}"], "data_stream": {{}}}}"#);
    stand.config.index = stream.parse().unwrap();
    stand.config.target = Target::DataStream;
    stand.config.template = Some(Template::new(&stream, body).unwrap());
    let sink = stand.sink();
    let count = || {
        server.done("POST", &format!("/{stream}/_refresh"), "");
        let found: Value = serde_json::from_str(&server.get(&format!("/{stream}/_search?q=_id:{}", id(0, 1)))).unwrap();
        found["hits"]["hits"].as_array().unwrap().len()
    };
    for expected in [1, 1] {
        assert_eq!(sink.write(&plain(0, 1, 3)).await, Ok(Report::Stored));
        assert_eq!(count(), expected);
    }
    server.done("POST", &format!("/{stream}/_rollover"), "");
    for expected in [2, 2] {
        assert_eq!(sink.write(&plain(0, 1, 3)).await, Ok(Report::Stored));
        assert_eq!(count(), expected);
    }
    server.done("DELETE", &format!("/_data_stream/{stream}"), "");
    server.done("DELETE", &format!("/_index_template/{stream}"), "");
}
