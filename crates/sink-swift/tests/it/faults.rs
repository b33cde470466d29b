//! Tokens that expire, and objects that are missing in the listing.

use sink_testing::containers::ContainerFixture;
use sink_testing::events::{batch, deliver, plain};
use testkit::swift::{SwiftProcess, SwiftServer};

use crate::fixture::sink_of;

#[tokio::test]
async fn expired_token_is_renewed_transparently() {
    let Some(server) = SwiftServer::start() else { return };
    let fixture = ContainerFixture::new(&server, sink_of);
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 10)).await;
    // The process that stores the tokens loses them.
    server.kill_part(SwiftProcess::Memcached);
    server.run_part(SwiftProcess::Memcached);
    let large = "x".repeat(1 << 20);
    let payload = format!("{{\"large\": \"{large}\"}}");
    deliver(&sink, &plain(0, 11, 10)).await;
    server.kill_part(SwiftProcess::Memcached);
    server.run_part(SwiftProcess::Memcached);
    // A body that is encoded while it is sent is encoded once more.
    let batch = batch(0, 21, &[payload.as_str(); 12]);
    assert_eq!(sink.write(&batch).await, Ok(sink::WriteOutcome::Committed));
    assert_eq!(fixture.count(), 32);
}

#[tokio::test]
async fn object_missing_in_the_listing_is_added() {
    let Some(server) = SwiftServer::start() else { return };
    let fixture = ContainerFixture::new(&server, sink_of);
    let sink = fixture.sink();
    deliver(&sink, &plain(0, 1, 5)).await;
    // The state after an object server was killed between the object and its container's listing.
    server.kill_part(SwiftProcess::Container);
    deliver(&sink, &plain(0, 6, 5)).await;
    std::fs::remove_dir_all(server.folder().join("srv/d1/async_pending")).unwrap();
    server.run_part(SwiftProcess::Container);
    assert_eq!(server.client().list(&fixture.container).len(), 2);
    deliver(&sink, &plain(0, 6, 5)).await;
    assert_eq!(server.client().list(&fixture.container).len(), 4);
    assert_eq!(fixture.count(), 10);
}
