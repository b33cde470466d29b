//! Tests of stores of whole objects in containers of a real Swift server, which speaks Swift's protocol and S3's.

pub mod attachments;
pub mod conformance;
pub mod faults;
mod fixture;
pub mod large;
pub mod lines;
pub mod reads;
pub mod rejections;

pub use fixture::{ContainerFixture, MakeSink, OF_LINES, rules};
