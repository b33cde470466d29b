//! The tests of all stores in containers.

use objects::Codec;
use sink_testing::conformance::{check, sequences};
use sink_testing::containers::conformance::{ContainerStore, TestedContainer};
use sink_testing::containers::{MakeSink, attachments, faults, large, reads, rejections};
use sink_testing::odd_frames;
use sink_testing::through_writer::Through;
use testkit::swift::SwiftServer;

use crate::fixture::sink_of;

/// Random sequences for each test.
const SEQUENCES: u32 = 6;

struct S3;

impl ContainerStore for S3 {
    const KIND: &'static str = "s3";
    const MAKE_SINK: MakeSink = sink_of;
}

#[test]
fn passes_each_case_and_follows_the_model() {
    if SwiftServer::shared().is_some() {
        check::<TestedContainer<S3, 0>>();
        sequences::<TestedContainer<S3, 2>>(SEQUENCES);
    }
}

#[test]
fn passes_each_case_through_writers() {
    if SwiftServer::shared().is_some() {
        check::<Through<TestedContainer<S3, 0>>>();
    }
}

#[tokio::test]
async fn odd_frames_are_rejected() {
    if SwiftServer::shared().is_some() {
        odd_frames::are_rejected::<TestedContainer<S3, 0>>().await;
    }
}

/// Each byte, if `FOREBAY_SWIFT_CUTS` is set.
fn cut_step() -> Option<usize> {
    std::env::var_os("FOREBAY_SWIFT_CUTS").map(|_| 1)
}

#[tokio::test]
async fn cut_at_any_byte_of_an_answer_an_object_is_there_once() {
    faults::cut_at_any_byte(sink_of, cut_step()).await;
}

#[tokio::test]
async fn a_connection_that_froze_and_thaws_behind_a_twin_changes_nothing() {
    faults::freeze_and_thaw(sink_of).await;
}

#[tokio::test]
async fn servers_that_are_killed_under_load_have_each_object_once() {
    let kills = std::env::var("FOREBAY_SWIFT_KILLS").ok().map(|count| count.parse().unwrap());
    faults::kill_servers(sink_of, kills).await;
}

#[tokio::test]
async fn an_object_that_memory_does_not_keep_arrives_as_it_is_and_is_found_again() {
    faults::objects_beyond_memory(sink_of, &[Codec::None]).await;
}

#[tokio::test]
async fn parts_are_objects_whose_names_stand_in_the_lines() {
    attachments::stored_once(sink_of).await;
}

#[tokio::test]
async fn cut_at_any_byte_of_an_answer_each_part_is_there_once() {
    attachments::cut_at_any_byte(sink_of, cut_step()).await;
}

#[tokio::test]
async fn what_has_an_objects_name_already_is_left_alone() {
    rejections::name_taken(sink_of).await;
}

#[tokio::test]
async fn a_container_that_is_removed_is_made_anew() {
    rejections::container_removed(sink_of).await;
}

#[tokio::test]
async fn a_large_object_that_is_there_is_the_same() {
    large::found_again(sink_of).await;
}

#[tokio::test]
async fn what_the_store_has_is_given_kept_and_asked_for_again() {
    reads::kept_and_asked_for_again(sink_of).await;
}

#[tokio::test]
async fn a_large_object_comes_in_parts_and_not_of_another() {
    reads::in_parts(sink_of).await;
}
