//! Any bytes as a request of the bulk API: each record has one item, and the response is JSON.

use testkit::fuzz::{Corpus, run};

use super::intake;
use crate::testing::{call, post};

const SAMPLES: &[&[u8]] = &[
    b"{\"create\":{\"_index\":\"logs-2026.11.28\",\"_id\":\"1\"}}\n{\"a\":1}\n{\"index\":{\"_index\":\"b\"}}\n{}\n",
    b"{\"index\":{\"_id\":1,\"dynamic_templates\":{\"a\":\"b\"}}}\r\n{}\r\n{\"delete\":{\"_id\":\"1\"}}\r\n",
    b"{\"update\":{\"_index\":\".ds-a-000001\",\"_id\":\"\\u00e9\\\"\"}}\n{\"doc\":{}}\n\n{\"create\":{}}\n1",
];
const TOKENS: &[&[u8]] = &[
    b"\n",
    b"\r\n",
    b"{\"create\":{}}\n",
    b"\"_id\":",
    b"\"_index\":",
    b"null",
    b"\"\"",
    b"\"\\ud800\"",
    b"<a-{now/d}>",
    b"-2026.11.28-000001",
    b"{\"x\":[",
    b"\xff",
    b"\0",
];

#[test]
fn fuzz_elasticsearch() {
    let intake = intake();
    let targets = ["/_bulk", "/a/_bulk", "/a/_bulk?filter_path=errors,items.*.error,items.*.status"];
    let mut inputs = 0;
    run("elasticsearch", Corpus { samples: SAMPLES, tokens: TOKENS }, |bytes| {
        inputs += 1;
        let target = targets[inputs % targets.len()];
        let rejected = [0, inputs % 5];
        match post(&mut *call(&intake, "POST", target, &[]), bytes, &rejected) {
            Ok((records, reply)) => {
                let response: serde_json::Value = serde_json::from_slice(&reply.body).expect("the response is JSON");
                let items = response["items"].as_array().expect("there are items");
                assert_eq!(items.len(), records.len());
                assert_eq!(response["errors"], true);
                for (item, record) in items.iter().flat_map(|item| item.as_object().unwrap().values()).zip(&records) {
                    assert!(record.payload.is_ok() || item["status"] == 400, "{item}");
                }
                (200, records.len().min(4), records.iter().filter(|record| record.payload.is_ok()).count().min(4))
            }
            Err(reply) => {
                let error: serde_json::Value = serde_json::from_slice(&reply.body).expect("the response is JSON");
                assert_eq!(error["status"], reply.status);
                (reply.status, error["error"]["reason"].to_string().len(), 0)
            }
        }
    });
}
