//! Requests as senders write them.

mod before;
mod bulk;
mod document;
mod fuzz;

use std::sync::Arc;

use super::{Elasticsearch, Version};
use crate::{Intake, Reply};

fn intake() -> Arc<dyn Intake> {
    Arc::new(Elasticsearch { version: Version::parse("8.19.0").unwrap() })
}

fn text(reply: &Reply) -> &str {
    str::from_utf8(&reply.body).unwrap()
}

const PRODUCT: &str = "X-Elastic-Product: Elasticsearch\r\n";
