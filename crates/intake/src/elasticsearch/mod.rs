//! The intake for senders of Elasticsearch and OpenSearch: the bulk API, single documents, and the requests that senders make before.
//!
//! | file | content |
//! |---|---|
//! | `route.rs` | paths and methods |
//! | `fixed.rs`, `setup.rs` | responses that don't depend on the body |
//! | `bulk.rs`, `action_line.rs`, `items.rs`, `bulk_response.rs` | the bulk API |
//! | `document.rs` | a request with one document |
//! | `index_name.rs` | the type of an index |
//! | `filter.rs`, `media.rs`, `error.rs` | the shape of responses |

mod action;
mod action_line;
mod action_members;
mod bulk;
mod bulk_response;
mod document;
mod error;
mod filter;
mod fixed;
mod generated_id;
mod index_name;
mod items;
mod media;
mod route;
mod setup;
#[cfg(test)]
mod tests;
mod version;

use std::sync::Arc;

use settings::{Section, Setting, SettingsReader, Unset};

use crate::{Intake, IntakeHead, IntakeKind, IntakePath, IntakeRoute, JSON, Problem, Reply};

use version::{VERSION_DEFAULT, Version};

/// The kind of intake.
pub static KIND: IntakeKind = IntakeKind {
    name: "elasticsearch",
    path: IntakePath::Fixed("/es"),
    sender: "hosts: [\"{URL}\"]",
    settings: SETTINGS,
    secrets: &[],
    may_lack_ids: true,
    read,
};

const SETTINGS: &[Setting] = &[Setting::text(
    "version",
    "the version of Elasticsearch that the intake reports to senders. Some reject versions older than their own",
)
.or(Unset::Text(VERSION_DEFAULT))];

fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<Arc<dyn Intake>> {
    let version = reader.text_or(section, "version", VERSION_DEFAULT, Version::parse)?;
    Some(Arc::new(Elasticsearch { version }))
}

/// The intake.
#[derive(Debug)]
pub(crate) struct Elasticsearch {
    version: Version,
}

impl Intake for Elasticsearch {
    fn route(&self, head: &IntakeHead<'_>) -> IntakeRoute {
        route::of(&self.version, head)
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        error::refusal(problem, JSON)
    }
}
