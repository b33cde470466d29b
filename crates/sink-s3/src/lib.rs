//! S3, and compatible services: each request is signed with a secret that isn't sent.

mod bucket;
mod config;
mod settings;
mod signature;
mod store;

pub use bucket::{Bucket, InvalidBucket};
pub use config::S3Config;
pub use settings::KIND;
pub use store::sink;
