//! Replays of dead letters into a stream, which has no ids: answers that are cut at many places, and a Forebay that is killed after some
//! of them. Stored events aren't stored again.

use crate::support::{Folder, Server, forebay, wait_until};
use testkit::proxy::Proxy;
use testkit::redis::RedisServer;

const LETTERS: usize = 120;
/// Where answers are cut: the server's answers before the effect of a replay of two dead letters have more bytes than the first, and those up to
/// its end fewer than the last.
const CUTS: std::ops::Range<usize> = 0..270;
const CUT_STEP: usize = 9;

/// Replays at most two dead letters: whether none of the selected ones stays.
fn replay(server: &Server) -> bool {
    let admin = server.admin.to_string();
    forebay().args(["dead", "replay", "--limit", "2", "--admin", &admin]).output().unwrap().status.success()
}

#[test]
fn replay_without_response_duplicates_nothing() {
    let Some(redis) = RedisServer::start() else { return };
    let proxy = Proxy::start(&redis.socket());
    let url = format!("redis://{}", proxy.address());
    let folder = Folder::new();
    let server = super::start(&folder, &url, "mode = \"counter\"\nkey = \"counts\"\nfield = \"/none\"\n");
    super::post_to(&server, &["access"], 0..LETTERS);
    server.wait_delivered();
    assert_eq!(server.metric("forebay_events_dead_total{"), LETTERS as u64);
    drop(server);

    // They are wanted in a stream instead.
    let start = || super::start(&folder, &url, "");
    let mut server = start();
    let count = || redis.ask(&["XLEN", "access"]).number();
    let (mut behind_the_effect, mut before) = (0, 0);
    for (round, at) in CUTS.step_by(CUT_STEP).enumerate() {
        assert!(wait_until(|| replay(&server)), "a connection is open");
        let stored = count();
        let cut = proxy.cut_after(at);
        let is_done = replay(&server);
        drop(cut);
        match (is_done, count() > stored) {
            // The answer may be cut, and another connection may ask the store for its contents.
            (_, true) => behind_the_effect += 1,
            (false, false) => before += 1,
            (true, false) => {}
        }
        if round % 2 == 0 {
            drop(server);
            server = start();
        }
    }
    assert!(behind_the_effect > 2 && before > 0, "{behind_the_effect} after the effect, {before} before it");
    assert!(wait_until(|| replay(&server) && server.metric("forebay_events_dead_total{") == 0));
    super::expect_numbers(super::payloads(redis.ask(&["XRANGE", "access", "-", "+"])), LETTERS);
    assert_eq!(server.metric("forebay_events_stored_total{"), LETTERS as u64);
}
