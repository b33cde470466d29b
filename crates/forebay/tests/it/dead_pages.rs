//! Many dead letters over the admin API: pages, groups, dry runs and expected numbers.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::dead::DeadFixture;
use crate::support::payloads;

/// A number in a reason is a value: both triggers make one group.
const NUMBERED: &str = "drop trigger refuse;
    create trigger even before insert on events when new.payload like '%0}' begin select raise(abort, 'row 17 is bad'); end;
    create trigger odd before insert on events when new.payload like '%1}' begin select raise(abort, 'row 18 is bad'); end;
    create trigger other before insert on events when new.payload like '%2}' begin select raise(abort, 'no twos'); end;";
const LETTERS: usize = 2_500;

fn json(fixture: &DeadFixture, method: &str, target: &str) -> (u16, Value) {
    let (status, body) = fixture.api(method, target, "");
    (status, serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}")))
}

fn ids(page: &Value) -> Vec<String> {
    page["letters"].as_array().unwrap().iter().map(|letter| letter["id"].as_str().unwrap().to_owned()).collect()
}

/// All pages in this order; `between` runs after each.
fn pages(fixture: &DeadFixture, order: &str, mut between: impl FnMut(usize)) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    for number in 1.. {
        let (status, page) = json(fixture, "GET", &format!("/api/dead?limit=400&order={order}{cursor}"));
        assert_eq!(status, 200, "{page}");
        found.extend(ids(&page));
        assert_eq!(page["more"].as_bool().unwrap(), !page["next"].is_null());
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
        between(number);
    }
    found
}

fn post_bad(fixture: &DeadFixture, numbers: std::ops::Range<usize>) {
    let lines: String = numbers.map(|number| format!("{{\"bad\":{number}}}\n")).collect();
    assert_eq!(fixture.server().post("/ingest/batch/access", &lines).0, 200);
    fixture.server().wait_delivered();
}

#[test]
fn pages_stay_valid_in_both_orders() {
    let fixture = DeadFixture::new();
    post_bad(&fixture, 0..LETTERS);
    let ascending = pages(&fixture, "asc", |_| {});
    assert_eq!(ascending.iter().collect::<BTreeSet<_>>().len(), LETTERS, "each once");
    let mut descending = pages(&fixture, "desc", |_| {});
    assert_eq!((descending[0].clone(), descending.len()), (ascending[LETTERS - 1].clone(), LETTERS));
    descending.reverse();
    assert!(descending == ascending);
    // New ones are not on later pages of the newest first; a dropped one is missing.
    let dropped = &ascending[2];
    let found = pages(&fixture, "desc", |number| {
        if number == 1 {
            post_bad(&fixture, LETTERS..LETTERS + 5);
            assert_eq!(json(&fixture, "POST", &format!("/api/dead/drop?id={dropped}")).0, 200);
        }
    });
    assert_eq!((found.len(), found.contains(dropped)), (LETTERS - 1, false));
    assert_eq!(pages(&fixture, "asc", |_| {}).len(), LETTERS + 4);
    for wrong in ["cursor=7", "order=newest"] {
        assert_eq!(json(&fixture, "GET", &format!("/api/dead?{wrong}")).0, 400, "{wrong}");
    }
    for wrong in ["cursor=7.local", "order=desc"] {
        let (status, answer) = json(&fixture, "POST", &format!("/api/dead/replay?{wrong}"));
        assert_eq!((status, &answer["code"]), (400, &"query".into()), "a replay has no pages");
    }
}

#[test]
fn dry_run_of_a_group_equals_its_outcome() {
    let fixture = DeadFixture::new();
    fixture.sql(NUMBERED);
    post_bad(&fixture, 0..100);
    let (status, found) = json(&fixture, "GET", "/api/dead/groups");
    assert_eq!((status, &found["more"]), (200, &0.into()));
    let shown: Vec<_> = found["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| {
            assert!(group["oldest"].as_str() <= group["newest"].as_str(), "{group}");
            let text = |name: &str| group[name].as_str().unwrap().to_owned();
            (
                text("sink"),
                text("type"),
                text("reason").replace("the table rejects the event", "…"),
                group["letters"].clone(),
            )
        })
        .collect();
    let group =
        |reason: &str, letters: u64| ("local".to_owned(), "access".to_owned(), reason.to_owned(), letters.into());
    assert_eq!(shown, [group("row … is bad (…)", 20), group("no twos (…)", 10)]);
    let reason = found["groups"][0]["reason"].as_str().unwrap();
    let encoded: String = reason.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let of_group = format!("reason_group={encoded}");
    let plan = json(&fixture, "POST", &format!("/api/dead/drop?dry_run=true&{of_group}")).1;
    let of_sink = serde_json::json!([{"sink": "local", "letters": 20, "repeatable": "once"}]);
    assert_eq!(plan, serde_json::json!({"letters": 20, "sinks": of_sink}));
    let (status, answer) = json(&fixture, "POST", &format!("/api/dead/drop?expect=19&{of_group}"));
    assert_eq!((status, &answer["code"]), (409, &"changed".into()), "{answer}");
    assert_eq!(
        json(&fixture, "GET", "/api/dead?limit=1000").1["letters"].as_array().unwrap().len(),
        30,
        "nothing was dropped"
    );
    let (status, answer) = json(&fixture, "POST", &format!("/api/dead/drop?expect=20&{of_group}"));
    assert_eq!((status, &answer["sinks"][0]["dropped"]), (200, &20.into()), "{answer}");
    let all = json(&fixture, "POST", "/api/dead/drop?dry_run=true").1;
    assert_eq!(all["letters"], 10, "a dry run needs no filter");
    fixture.sql("drop trigger other");
    assert_eq!(json(&fixture, "POST", "/api/dead/replay?dry_run=true").1["letters"], 10);
    assert_eq!(json(&fixture, "POST", "/api/dead/replay?expect=10").1["sinks"][0]["stored"], 10);
    let stored = payloads(&fixture.folder.data());
    assert_eq!((stored.len(), stored.iter().collect::<BTreeSet<_>>().len()), (80, 80), "each once");
    let unknown = "/api/dead/00000000-0000-0000-0000-000000000000?dry_run=true";
    assert_eq!(json(&fixture, "PUT", unknown).1["code"], "query", "an edit has no dry run");
    let actions = json(&fixture, "GET", "/api/actions").1;
    let newest = &actions["actions"][0];
    assert_eq!((&newest["action"], &newest["result"]), (&"dead replay".into(), &"local: 10 stored".into()));
}
