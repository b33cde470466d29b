//! Attachments: parts of payloads as separate objects, as the documentation shows them.

use std::path::Path;

use serde_json::Value;

use crate::support::{Folder, Server, forebay};
use testkit::swift::SwiftServer;

const PAGE: &str = include_str!("../../../../../docs/guides/stores/objects.md");
const CONTAINER: &str = "shots";

/// The text of the page after this heading, in a block of this language.
fn block(language: &str) -> &'static str {
    let (_, section) = PAGE.split_once("## Parts of payloads as objects").unwrap();
    let (_, block) = section.split_once(&format!("```{language}\n")).unwrap();
    block.split("```").next().unwrap()
}

fn start(folder: &Folder, swift: &SwiftServer) -> Server {
    let configuration = block("toml").replace("127.0.0.1:8080", &swift.address().to_string());
    let configuration = folder.write("forebay.toml", configuration);
    Server::start_configured(&folder.data(), Path::new(&configuration), &folder.path("log"))
}

/// The payloads in the container's objects of lines, and the names of all that is neither such an object nor its manifest.
fn stored(swift: &SwiftServer) -> (Vec<String>, Vec<String>) {
    let (client, mut payloads) = (swift.client(), Vec::new());
    let (lines, others): (Vec<_>, Vec<_>) =
        client.list(CONTAINER).into_iter().partition(|name| name.contains(".ndjson"));
    for name in lines.iter().filter(|name| name.ends_with(".ndjson")) {
        let text = String::from_utf8(client.get(CONTAINER, name).unwrap()).unwrap();
        payloads.extend(text.lines().map(str::to_owned));
    }
    (payloads, others)
}

#[test]
fn page_example_stores_objects_and_rejects_invalid_base64() {
    let Some(swift) = SwiftServer::shared() else { return };
    let folder = Folder::new();
    let server = start(&folder, swift);
    let sent = block("sh").split('\'').nth(1).unwrap();
    assert_eq!(server.post("/ingest/event/shot", sent).0, 200);
    assert_eq!(server.post("/ingest/event/shot", &sent.replace("iVBO", "i.BO")).0, 200);
    assert_eq!(server.post("/ingest/event/shot", "{\"camera\": 8}").0, 200);
    server.wait_delivered();
    assert_eq!(server.metric("forebay_events_stored_total{"), 2);
    assert_eq!(server.metric("forebay_events_dead_total{"), 1);
    let (mut payloads, parts) = stored(swift);
    payloads.sort();
    let [part] = &parts[..] else { panic!("{parts:?}") };
    assert_eq!(payloads, [sent.replace("iVBORw0KGgo=", part), "{\"camera\": 8}".to_owned()]);
    let (shown, stored): (Value, Value) =
        (serde_json::from_str(block("json")).unwrap(), serde_json::from_str(&payloads[0]).unwrap());
    let shape = |of: &Value| {
        let name = of["image"].as_str().unwrap();
        (name.matches('/').count(), name.matches("shots-20").count(), of["camera"].clone(), of["type"].clone())
    };
    assert_eq!(shape(&shown), shape(&stored), "the page shows what comes");
    let said = swift.client().ask("GET", &format!("/{CONTAINER}/{part}"), &[], b"");
    assert_eq!((said.header("Content-Type"), &*said.body), (Some("image/png"), &b"\x89PNG\r\n\x1a\n"[..]));
    assert_eq!(server.stop("-TERM"), Some(0));
    let mut dead = forebay();
    let letters = dead.args(["dead", "list", "--data"]).arg(folder.data()).output().unwrap();
    let letters = String::from_utf8(letters.stdout).unwrap();
    assert!(
        letters.lines().count() == 2 && letters.contains("/image") && letters.contains("isn't base64"),
        "{letters}"
    );
}
