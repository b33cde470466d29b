//! The configuration of a sink: the store's nodes, the indices, and their documents.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

use super::index::IndexPattern;
use net::http_client::{Endpoint, InvalidEndpoint};
use sink::AllowedRisks;

/// The maximum of nodes in a configuration.
const NODES_MAX: usize = 32;
/// Bytes of a template's name.
const TEMPLATE_NAME_BYTES_MAX: usize = 128;

/// The store, its indices, and their documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElasticsearchConfig {
    /// The nodes of the store.
    pub nodes: NodeList,
    /// The key to use instead of the users of the nodes.
    pub api_key: Option<ApiKey>,
    /// A PEM file with the trusted authorities; without one the machine's.
    pub ca: Option<PathBuf>,
    /// The names of the indices or data streams.
    pub index: IndexPattern,
    /// The kind of these names.
    pub target: IndexTarget,
    /// The content of a document.
    pub shape: DocumentShape,
    /// Whether a document has `@timestamp`. A payload's own is kept.
    pub has_timestamp: bool,
    /// The template to install if it is missing.
    pub template: Option<Template>,
    /// What to do with an event whose id has another document.
    pub conflict: DocumentConflictPolicy,
    /// Bytes of documents and actions at which a request ends: a single document may be larger.
    pub request_bytes: usize,
    /// The maximum of requests in flight, for all lanes together.
    pub requests_max: NonZeroUsize,
    /// Whether requests are compressed.
    pub gzip: bool,
    /// How long the store may be silent during a request.
    pub timeout: Duration,
    /// Which risks of the store are allowed.
    pub allowed: AllowedRisks,
}

impl ElasticsearchConfig {
    /// Whether documents contain the fields that identify events. In a data stream an event's id doesn't identify one
    /// document.
    #[must_use]
    pub const fn can_read(&self) -> bool {
        matches!((self.shape, self.target), (DocumentShape::Envelope, IndexTarget::Indices))
    }
}

/// The kind of an index name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexTarget {
    /// Indices, or aliases with a write index each.
    #[default]
    Indices,
    /// Data streams, in which nothing is ever overwritten: each revision of a result is a separate document.
    DataStream,
}

/// What a document holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocumentShape {
    /// The payload's members, and `@timestamp` if they have none. A payload that isn't an object becomes a member
    /// `payload`.
    #[default]
    Payload,
    /// The payload in a member `payload`, with the event's other fields.
    Envelope,
}

/// What to do with an event whose id has a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocumentConflictPolicy {
    /// The document is compared with the event: a duplicate changes nothing, another event becomes a dead letter.
    #[default]
    DeadLetter,
    /// The document is unchanged.
    Ignore,
    /// The event replaces it.
    Overwrite,
    /// The members of the event replace those of the document.
    Merge,
}

/// The nodes of a store: at least one. Each accepts any request.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeList(Vec<Endpoint>);

/// Why a text isn't a list of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNodes {
    /// One of them isn't a URL.
    #[error(transparent)]
    Node(InvalidEndpoint),
    /// Too many.
    #[error("name at most {NODES_MAX} nodes")]
    Count,
}

impl FromStr for NodeList {
    type Err = InvalidNodes;

    fn from_str(text: &str) -> Result<Self, InvalidNodes> {
        let nodes: Result<Vec<Endpoint>, _> = text.split(',').map(|node| node.trim().parse()).collect();
        let nodes = nodes.map_err(InvalidNodes::Node)?;
        if nodes.len() > NODES_MAX { Err(InvalidNodes::Count) } else { Ok(Self(nodes)) }
    }
}

impl NodeList {
    pub(super) fn as_slice(&self) -> &[Endpoint] {
        &self.0
    }

    /// Whether any of the URLs has a user.
    #[must_use]
    pub fn has_user(&self) -> bool {
        self.0.iter().any(|node| node.user.is_some())
    }
}

/// Without users and passwords.
impl fmt::Display for NodeList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<String> = self.0.iter().map(Endpoint::to_string).collect();
        f.write_str(&nodes.join(","))
    }
}

impl fmt::Debug for NodeList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeList({self})")
    }
}

/// A key of the store's API, in the form that the store returns (`encoded`). It is never displayed.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(pub(super) String);

impl ApiKey {
    /// A key; `None` if the text can't be in a header, as a key can.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let is_good = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_good.then(|| Self(text.to_owned()))
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// An index template: the properties of new indices and data streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pub(super) name: String,
    pub(super) body: String,
}

/// Why something isn't a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTemplate {
    /// Its name.
    #[error(
        "the file name without its extension is the template's name: 1 to {TEMPLATE_NAME_BYTES_MAX} of a-z, 0-9, `-`, \
         `_` and `.`"
    )]
    Name,
    /// Its text.
    #[error("it isn't an index template: {0}")]
    Body(String),
}

/// The part of a template that is checked here.
#[derive(Deserialize)]
struct Described {
    index_patterns: Patterns,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Patterns {
    One(String),
    Several(Vec<String>),
}

impl Template {
    /// A template of this name, with the JSON for the store.
    ///
    /// # Errors
    /// The name is invalid, or the text names no indices.
    pub fn new(name: &str, body: String) -> Result<Self, InvalidTemplate> {
        let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
        let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        if !begins || name.len() > TEMPLATE_NAME_BYTES_MAX || !name.bytes().all(is_allowed) {
            return Err(InvalidTemplate::Name);
        }
        let described: Described =
            serde_json::from_str(&body).map_err(|error| InvalidTemplate::Body(error.to_string()))?;
        let is_empty = match &described.index_patterns {
            Patterns::One(pattern) => pattern.is_empty(),
            Patterns::Several(patterns) => patterns.is_empty(),
        };
        if is_empty {
            return Err(InvalidTemplate::Body("its `index_patterns` are empty".to_owned()));
        }
        Ok(Self { name: name.to_owned(), body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_displayed_without_passwords() {
        let nodes: NodeList = "http://ann:s3cret@one:9200, https://two/es".parse().unwrap();
        assert_eq!(nodes.to_string(), "http://one:9200,https://two/es");
        assert!(!format!("{nodes:?} {:?}", ApiKey::new("s3cret")).contains("s3cret"));
        for wrong in ["", "http://one:9200,", "http://one,two"] {
            assert!(wrong.parse::<NodeList>().is_err(), "{wrong}");
        }
        assert_eq!(vec!["http://a"; NODES_MAX + 1].join(",").parse::<NodeList>(), Err(InvalidNodes::Count));
        assert!(ApiKey::new("").is_none() && ApiKey::new("a b").is_none() && ApiKey::new("a\n").is_none());
    }

    #[test]
    fn template_names_its_indices() {
        for good in [r#"{"index_patterns": ["a-*"]}"#, r#"{"index_patterns": "a-*", "data_stream": {}}"#] {
            assert!(Template::new("access", good.to_owned()).is_ok(), "{good}");
        }
        for wrong in ["", "{}", "[]", r#"{"index_patterns": []}"#, r#"{"index_patterns": 1}"#] {
            assert!(matches!(Template::new("access", wrong.to_owned()), Err(InvalidTemplate::Body(_))), "{wrong}");
        }
        for wrong in ["", "a/b", "_a", "A", "a?b"] {
            assert_eq!(Template::new(wrong, String::new()), Err(InvalidTemplate::Name), "{wrong}");
        }
    }
}
