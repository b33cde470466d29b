//! A gateway that is told other types and rules while it runs.

use access::Demand;
use gateway::GatewayOptions;

use crate::stand::{Stand, named_types};

fn head(path: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n")
}

#[test]
fn what_has_begun_is_not_stored_where_its_type_is_gone_and_is_told_so() {
    let stand = Stand::with(named_types(&[("a", None), ("b", None)]), GatewayOptions::default());
    let begun = ["/ingest/event/a", "/ingest/event/b", "/ingest/batch/a", "/ingest/batch/b"].map(|path| {
        let mut client = stand.connect();
        client.send(head(path, 3));
        client.send("[1");
        client
    });
    stand.wait("the parts of the bodies have come", |counters| counters.bytes_in_flight() >= 8);
    stand.gateway().control().configure(&named_types(&[("a", None), ("c", None)]), &GatewayOptions::default());
    for (mut client, status) in begun.into_iter().zip([200, 404, 200, 404]) {
        client.send("]");
        let answer = client.answer();
        assert_eq!(answer.status, status);
        client.post("/ingest/event/c", "", b"3");
        assert_eq!(client.answer().status, 200, "the connection goes on");
        client.post("/ingest/event/b", "", b"4");
        assert_eq!(client.answer().status, 404);
    }
    assert!(stand.stored().iter().all(|event| event.type_name != "b"));
}

#[test]
fn narrowed_types_are_those_of_both_and_other_rules_hold_at_once() {
    let stand = Stand::with(named_types(&[("a", None), ("b", None)]), GatewayOptions::default());
    let (before, after) = (named_types(&[("a", None), ("b", None)]), named_types(&[("b", None), ("c", None)]));
    let statuses = || ["a", "b", "c"].map(|name| stand.post(&format!("/ingest/event/{name}"), "", "1").status);
    assert_eq!(statuses(), [200, 200, 404]);
    stand.gateway().control().narrow(&after, &before, &GatewayOptions::default());
    assert_eq!(statuses(), [404, 200, 404]);
    stand.gateway().control().configure(&after, &GatewayOptions::default());
    assert_eq!(statuses(), [404, 200, 200]);
    let strict = GatewayOptions { demand: Demand::Always, ..GatewayOptions::default() };
    stand.gateway().control().configure(&after, &strict);
    assert_eq!(statuses(), [401, 401, 401]);
}

/// A request that is there when the gateway stops is answered, also on a connection that waits for one.
#[test]
fn what_has_come_before_the_stop_is_answered() {
    for _ in 0..20 {
        let mut stand = Stand::open();
        let mut client = stand.connect();
        client.post("/ingest/event", "", b"1");
        assert_eq!(client.answer().status, 200);
        client.post("/ingest/event", "", b"2");
        let gateway = stand.take_gateway();
        assert!(gateway.stop(std::time::Instant::now() + std::time::Duration::from_secs(60)));
        assert_eq!(client.answer().status, 200);
        assert_eq!(stand.payloads(), ["1", "2"]);
    }
}
