//! The tests of all stores in containers.

use objects::Codec;
use sink_testing::conformance::{check, sequences};
use sink_testing::containers::conformance::{ContainerStore, TestedContainer};
use sink_testing::containers::{MakeSink, attachments, faults, rejections};
use sink_testing::odd_frames;
use sink_testing::through_writer::Through;
use testkit::swift::SwiftServer;

use crate::fixture::sink_of;

/// Random sequences for each test.
const SEQUENCES: u32 = 6;

struct Swift;

impl ContainerStore for Swift {
    const KIND: &'static str = "swift";
    const MAKE_SINK: MakeSink = sink_of;
}

#[test]
fn passes_each_case_and_follows_the_model() {
    if SwiftServer::shared().is_some() {
        check::<TestedContainer<Swift, 0>>();
        check::<TestedContainer<Swift, 1>>();
        check::<TestedContainer<Swift, 2>>();
        sequences::<TestedContainer<Swift, 2>>(SEQUENCES);
    }
}

#[test]
fn passes_the_suite_through_writers() {
    if SwiftServer::shared().is_some() {
        check::<Through<TestedContainer<Swift, 2>>>();
        sequences::<Through<TestedContainer<Swift, 2>>>(SEQUENCES);
    }
}

#[tokio::test]
async fn odd_frames_are_rejected() {
    if SwiftServer::shared().is_some() {
        odd_frames::are_rejected::<TestedContainer<Swift, 0>>().await;
    }
}

/// Each byte, if `FOREBAY_SWIFT_CUTS` is set.
fn cut_step() -> Option<usize> {
    std::env::var_os("FOREBAY_SWIFT_CUTS").map(|_| 1)
}

#[tokio::test]
async fn object_is_stored_once_when_answers_are_cut() {
    faults::cut_at_any_byte(sink_of, cut_step()).await;
}

#[tokio::test]
async fn thawed_connection_changes_nothing_after_a_second_write() {
    faults::freeze_and_thaw(sink_of).await;
}

#[tokio::test]
async fn killed_servers_have_each_object_once() {
    let kills = std::env::var("FOREBAY_SWIFT_KILLS").ok().map(|count| count.parse().unwrap());
    faults::kill_servers(sink_of, kills).await;
}

#[tokio::test]
async fn object_larger_than_memory_is_stored_once() {
    faults::objects_beyond_memory(sink_of, &[Codec::None, Codec::Gzip]).await;
}

#[tokio::test]
async fn attachments_are_objects_named_in_the_lines() {
    attachments::stored_once(sink_of).await;
}

#[tokio::test]
async fn attachments_are_stored_once_when_answers_are_cut() {
    attachments::cut_at_any_byte(sink_of, cut_step()).await;
}

#[tokio::test]
async fn object_of_the_same_name_is_left_unchanged() {
    rejections::name_taken(sink_of).await;
}

#[tokio::test]
async fn removed_container_is_created_again() {
    rejections::container_removed(sink_of).await;
}
