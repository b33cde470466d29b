//! Requests that the server rejects, and names that exist already.

use sink::{SinkError, WriteOutcome};
use testkit::swift::SwiftServer;

use super::{ContainerFixture, MakeSink};
use crate::events::{deliver, plain};

/// The reason of a failure that needs an operator.
///
/// # Panics
/// If it is none.
#[must_use]
pub fn misconfigured(answer: &Result<WriteOutcome, SinkError>) -> &str {
    let Err(SinkError::Misconfigured(reason)) = answer else { panic!("{answer:?}") };
    reason
}

/// Other bytes under the name of an object.
///
/// # Panics
/// If they are changed, or the sink doesn't report them.
pub async fn name_taken(make_sink: MakeSink) {
    let Some(server) = SwiftServer::shared() else { return };
    let fixture = ContainerFixture::new(server, make_sink);
    let (sink, client) = (fixture.sink(), server.client());
    deliver(&sink, &plain(0, 1, 5)).await;
    let name = fixture.only_object();
    let path = format!("/{}/{name}", fixture.container);
    let good = client.get(&fixture.container, &name).unwrap();
    let changed: Vec<u8> = good.iter().map(|byte| byte.to_ascii_uppercase()).collect();
    for other in [&b"shorter"[..], b"", &changed] {
        assert!(client.ask("PUT", &path, &[], other).is_success());
        let answer = sink.write(&plain(0, 1, 5)).await;
        let reason = misconfigured(&answer);
        assert!(reason.contains(&name) && reason.contains("move it away"), "{reason}");
        assert_eq!(client.get(&fixture.container, &name).unwrap(), other);
    }
    assert!(client.ask("DELETE", &path, &[], b"").is_success());
    deliver(&sink, &plain(0, 1, 5)).await;
    assert_eq!(client.get(&fixture.container, &name).unwrap(), good);
}

/// A container that is removed while a sink uses it.
///
/// # Panics
/// If the sink doesn't create it again.
pub async fn container_removed(make_sink: MakeSink) {
    let Some(server) = SwiftServer::shared() else { return };
    let fixture = ContainerFixture::new(server, make_sink);
    let (sink, client) = (fixture.sink(), server.client());
    assert_eq!(sink.connect().await, Ok(()));
    assert_eq!(client.ask("DELETE", &format!("/{}", fixture.container), &[], b"").status, 204);
    deliver(&sink, &plain(0, 1, 5)).await;
    assert_eq!(fixture.count(), 5);
}
