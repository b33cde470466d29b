//! What is known of such a sink before it connects: where the store's nodes are, which indices, and what stands in them.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

use super::index::IndexPattern;
use net::http_client::{Endpoint, InvalidEndpoint};
use sink::AllowedRisks;

/// Nodes that one configuration names.
const NODES_MAX: usize = 32;
/// Bytes of a template's name.
const TEMPLATE_NAME_BYTES_MAX: usize = 128;

/// Which indices of which store, and what stands in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElasticsearchConfig {
    /// Where the store is.
    pub nodes: NodeList,
    /// Who asks, in the place of the users of the nodes.
    pub api_key: Option<ApiKey>,
    /// A PEM file with the authorities that are trusted; without one those that the machine trusts.
    pub ca: Option<PathBuf>,
    /// The names of the indices or data streams.
    pub index: IndexPattern,
    /// What these names are.
    pub target: IndexTarget,
    /// What a document holds.
    pub shape: DocumentShape,
    /// Whether a document has `@timestamp`. One of a payload stays.
    pub has_timestamp: bool,
    /// What is installed where it is missing.
    pub template: Option<Template>,
    /// What becomes of an event whose id is taken by another document.
    pub conflict: DocumentConflictPolicy,
    /// Bytes of documents and actions at which a request ends: one document alone may have more.
    pub request_bytes: usize,
    /// Requests in flight at most, for all lanes together.
    pub requests_max: NonZeroUsize,
    /// Whether requests are compressed.
    pub gzip: bool,
    /// How long the store may be silent in the middle of a request.
    pub timeout: Duration,
    /// With which risks the store is used.
    pub allowed: AllowedRisks,
}

impl ElasticsearchConfig {
    /// Whether documents have what events are found by. In a data stream an event's id doesn't name one document.
    #[must_use]
    pub const fn can_read(&self) -> bool {
        matches!((self.shape, self.target), (DocumentShape::Envelope, IndexTarget::Indices))
    }
}

/// What the names of indices are names of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexTarget {
    /// Indices, or aliases with an index each that is written to.
    #[default]
    Indices,
    /// Data streams, which nothing is ever overwritten in: each revision of a result is a document of its own.
    DataStream,
}

/// What a document holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocumentShape {
    /// The payload's members, and `@timestamp` where they have none. What is no object stands in a member `payload`.
    #[default]
    Payload,
    /// The payload in a member `payload`, beside what else is known of the event.
    Envelope,
}

/// What becomes of an event whose id is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocumentConflictPolicy {
    /// What is there is compared with it: a repetition changes nothing, another event is a dead letter.
    #[default]
    DeadLetter,
    /// The document stays as it is.
    Ignore,
    /// The event takes its place.
    Overwrite,
    /// The members of the event take the place of those that the document has.
    Merge,
}

/// The nodes of a store: at least one. Any of them takes any request.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeList(Vec<Endpoint>);

/// Why a text names no nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNodes {
    /// One of them isn't one.
    #[error(transparent)]
    Node(InvalidEndpoint),
    /// Too many.
    #[error("at most {NODES_MAX} nodes can be named")]
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

    /// Whether a user stands in any of the URLs.
    #[must_use]
    pub fn has_user(&self) -> bool {
        self.0.iter().any(|node| node.user.is_some())
    }
}

/// Without who asks.
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

/// A key of the store's API, as the store gives it out (`encoded`). It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(pub(super) String);

impl ApiKey {
    /// A key; `None` where the text can't stand in a header, as a key can.
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

/// An index template: what indices and data streams are to be like that begin later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pub(super) name: String,
    pub(super) body: String,
}

/// Why something is no template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTemplate {
    /// Its name.
    #[error(
        "the name of its file, without the ending, is the template's: 1 to {TEMPLATE_NAME_BYTES_MAX} of a-z, 0-9, `-`, `_` and `.`"
    )]
    Name,
    /// Its text.
    #[error("it is no index template: {0}")]
    Body(String),
}

/// What of a template can be told here.
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
    /// A template of this name, with the JSON that the store is to have.
    ///
    /// # Errors
    /// The name can't be one, or the text says nothing of any indices.
    pub fn new(name: &str, body: String) -> Result<Self, InvalidTemplate> {
        let can_stand = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
        let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        if !begins || name.len() > TEMPLATE_NAME_BYTES_MAX || !name.bytes().all(can_stand) {
            return Err(InvalidTemplate::Name);
        }
        let described: Described =
            serde_json::from_str(&body).map_err(|error| InvalidTemplate::Body(error.to_string()))?;
        let is_empty = match &described.index_patterns {
            Patterns::One(pattern) => pattern.is_empty(),
            Patterns::Several(patterns) => patterns.is_empty(),
        };
        if is_empty {
            return Err(InvalidTemplate::Body("its `index_patterns` name nothing".to_owned()));
        }
        Ok(Self { name: name.to_owned(), body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_stand_behind_one_another_and_are_shown_without_passwords() {
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
    fn a_template_says_which_indices_it_is_for() {
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
