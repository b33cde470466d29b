//! Sends requests to the store: to any of its nodes, by HTTP.

use std::io::Write;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, StatusCode};
use serde::Deserialize;

use super::config::{ElasticsearchConfig, Template};
use super::error::{Failure, message};
use super::nodes::Nodes;
use net::http_client::{Endpoint, HttpClient, HttpFailure, HttpOptions, empty, full};

/// How long a node may take to accept a connection, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a response: to as many documents as a batch has, each rejected with a page of text, or to a few documents
/// of full size.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bodies of fewer bytes aren't compressed.
const GZIP_BYTES_MIN: usize = 1024;
/// The oldest version of Elasticsearch with the required features: templates of data streams.
const ELASTICSEARCH_MIN: (u32, u32) = (7, 9);

const JSON: &str = "application/json";
const NDJSON: &str = "application/x-ndjson";
/// The part of a response to `_bulk` that is needed.
const BULK_FILTER: &str = "items.*.status,items.*.result,items.*.error,items.*._index";

/// The store.
pub(super) struct Server {
    client: HttpClient,
    nodes: Nodes,
    endpoints: Vec<Node>,
    gzip: bool,
    timeout: Duration,
}

struct Node {
    endpoint: Endpoint,
    authorization: Option<HeaderValue>,
}

/// A request.
struct Ask<'a> {
    method: Method,
    path: &'a str,
    content: Option<(&'static str, Bytes)>,
}

/// A response.
struct Answer {
    status: StatusCode,
    body: Bytes,
    /// The server's time since 1970, if it says it.
    date: Option<Duration>,
}

/// What the check of the version has found.
pub(super) struct Checked {
    /// The product and its version; `None` if the user may not read them.
    pub(super) product: Option<String>,
    /// The server's time since 1970, if it says it.
    pub(super) date: Option<Duration>,
}

/// A node's description of itself.
#[derive(Deserialize)]
struct About {
    version: Version,
}

#[derive(Deserialize)]
struct Version {
    number: String,
    distribution: Option<String>,
}

impl Server {
    /// Separate connections. `waits_for_retry_after` is for writes: a read gets its response immediately.
    pub(super) fn new(config: &ElasticsearchConfig, waits_for_retry_after: bool) -> Self {
        let options = HttpOptions {
            ca: config.ca.clone(),
            connect_timeout: CONNECT_TIMEOUT.min(config.timeout),
            silence_max: config.timeout,
            waits_for_retry_after,
        };
        let endpoints: Vec<Node> = config.nodes.as_slice().iter().map(|node| Node::new(node, config)).collect();
        let nodes = Nodes::new(endpoints.len());
        Self { client: HttpClient::new(options), nodes, endpoints, gzip: config.gzip, timeout: config.timeout }
    }

    /// Checks the store's kind and version.
    pub(super) async fn check_version(&self) -> Result<Checked, Failure> {
        let asked = Ask { method: Method::GET, path: "/", content: None };
        let Answer { status, body, date } = self.ask_for(asked, ANSWER_BYTES_MAX).await?;
        // A user with write access may not be allowed to read this.
        if status == StatusCode::FORBIDDEN {
            return Ok(Checked { product: None, date });
        }
        let body = success_body(status, body)?;
        let about = serde_json::from_slice::<About>(&body)
            .map_err(|_| Failure::Misfit("it isn't Elasticsearch or OpenSearch: set `url` to such a server".into()))?;
        about.version.check()?;
        let name = if about.version.distribution.is_some() { "OpenSearch" } else { "Elasticsearch" };
        Ok(Checked { product: Some(format!("{name} {}", about.version.number)), date })
    }

    /// Installs a template, unless there is one of its name.
    pub(super) async fn install(&self, template: &Template) -> Result<(), Failure> {
        let Template { name, body } = template;
        let path = format!("/_index_template/{name}");
        let (status, said) = self.ask(Ask { method: Method::GET, path: &path, content: None }).await?;
        if status != StatusCode::NOT_FOUND {
            return success_body(status, said).map(drop);
        }
        let (path, content) = (format!("{path}?create=true"), Some((JSON, Bytes::from(body.clone()))));
        let (status, said) = self.ask(Ask { method: Method::PUT, path: &path, content }).await?;
        // Another Forebay has installed it.
        if status == StatusCode::BAD_REQUEST && message(&said).contains("already exists") {
            return Ok(());
        }
        if status == StatusCode::BAD_REQUEST {
            return Err(Failure::Misfit(format!("it rejects the template {name}: {}", message(&said))));
        }
        success_body(status, said).map(drop)
    }

    /// Sends a `_bulk` request, and returns the response.
    pub(super) async fn bulk(&self, body: Vec<u8>) -> Result<Bytes, Failure> {
        // It must report its failures before Forebay's timeout.
        let seconds = (self.timeout * 4 / 5).as_secs().max(1);
        let path = format!("/_bulk?timeout={seconds}s&filter_path={BULK_FILTER}");
        let (status, body) =
            self.ask(Ask { method: Method::POST, path: &path, content: Some((NDJSON, body.into())) }).await?;
        success_body(status, body)
    }

    /// Gets the backing indices of a name, with their creation times. `None` if the user may not read them.
    pub(super) async fn backing_indices(&self, name: &str) -> Result<Option<Bytes>, Failure> {
        let path = format!("/{name}/_settings?ignore_unavailable=true&filter_path=*.settings.index.creation_date");
        let (status, body) = self.ask(Ask { method: Method::GET, path: &path, content: None }).await?;
        match status {
            StatusCode::NOT_FOUND => Ok(Some(Bytes::from_static(b"{}"))),
            StatusCode::FORBIDDEN => Ok(None),
            status => success_body(status, body).map(Some),
        }
    }

    /// Whether there is an index, an alias or a data stream of this name.
    pub(super) async fn has_index(&self, name: &str) -> Result<bool, Failure> {
        let (status, _) = self.ask(Ask { method: Method::GET, path: &format!("/{name}"), content: None }).await?;
        Ok(status.is_success())
    }

    /// Gets the settings that show how durable the indices of a name are. `None` if there is no such name, or if the
    /// user may not read them.
    pub(super) async fn durability(&self, name: &str) -> Result<Option<Bytes>, Failure> {
        let of = "*.settings.index.translog.durability,*.settings.index.creation_date";
        let path = format!("/{name}/_settings?ignore_unavailable=true&filter_path={of}");
        let (status, body) = self.ask(Ask { method: Method::GET, path: &path, content: None }).await?;
        match status {
            StatusCode::NOT_FOUND | StatusCode::FORBIDDEN => Ok(None),
            status => success_body(status, body).map(Some),
        }
    }

    /// Gets documents, or only their metadata.
    pub(super) async fn documents(&self, wanted: String, with_source: bool) -> Result<Bytes, Failure> {
        let content = Some((JSON, wanted.into()));
        // Unfiltered: a filter rewrites the documents, without empty parts.
        let path = if with_source { "/_mget" } else { "/_mget?_source=false" };
        let (status, body) = self.ask(Ask { method: Method::POST, path, content }).await?;
        success_body(status, body)
    }

    /// Sends a request about indices, as `{"query": …}` to `/INDEX/_search`.
    pub(super) async fn of_indices(&self, path: &str, question: Option<String>) -> Result<Bytes, Failure> {
        let content = question.map(|question| (JSON, question.into()));
        let (status, body) = self.ask(Ask { method: Method::POST, path, content }).await?;
        success_body(status, body)
    }

    /// Searches indices for documents, with a response of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// Also if the response is longer: [`Failure::is_long_answer`].
    pub(super) async fn search(&self, path: &str, question: String, bytes_max: usize) -> Result<Bytes, Failure> {
        let content = Some((JSON, question.into()));
        let Answer { status, body, .. } = self.ask_for(Ask { method: Method::POST, path, content }, bytes_max).await?;
        success_body(status, body)
    }

    /// Sends a request, and returns the response with any status.
    pub(super) async fn raw(
        &self,
        method: Method,
        path: &str,
        json: Option<Bytes>,
    ) -> Result<(StatusCode, Bytes), Failure> {
        self.ask(Ask { method, path, content: json.map(|json| (JSON, json)) }).await
    }

    pub(super) fn close_idle(&self) {
        self.client.close_idle();
    }

    /// Tries nodes in rotation, until one has received the request.
    async fn ask(&self, ask: Ask<'_>) -> Result<(StatusCode, Bytes), Failure> {
        let Answer { status, body, .. } = self.ask_for(ask, ANSWER_BYTES_MAX).await?;
        Ok((status, body))
    }

    async fn ask_for(&self, ask: Ask<'_>, bytes_max: usize) -> Result<Answer, Failure> {
        let Ask { method, path, content } = ask;
        let content = match content {
            Some((kind, body)) => Some(self.packed(kind, body).await?),
            None => None,
        };
        for is_last in (1..=self.nodes.count()).map(|attempt| attempt == self.nodes.count()) {
            let number = self.nodes.next();
            let Some(node) = self.endpoints.get(number) else { break };
            let answered = self.ask_node(node, &method, path, content.as_ref(), bytes_max).await;
            match answered {
                Ok(ref answer) if matches!(answer.status.as_u16(), 502..=504) => self.nodes.mark_down(number),
                Ok(_) => self.nodes.mark_healthy(number),
                Err(_) => self.nodes.mark_down(number),
            }
            match answered {
                Err(failure) if failure.is_unsent() && !is_last => {}
                answered => return Ok(answered?),
            }
        }
        Err(Failure::Unexpected("no node is configured".to_owned()))
    }

    async fn ask_node(
        &self,
        node: &Node,
        method: &Method,
        path: &str,
        content: Option<&Packed>,
        bytes_max: usize,
    ) -> Result<Answer, HttpFailure> {
        let mut request = Request::new(content.map_or_else(empty, |content| full(content.body.clone())));
        *request.method_mut() = method.clone();
        *request.uri_mut() = node.endpoint.url(path)?;
        let headers = request.headers_mut();
        if let Some(authorization) = &node.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        if let Some(Packed { kind, is_gzip, .. }) = content {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            if *is_gzip {
                headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
        }
        let answer = self.client.send(request).await?;
        let (status, date) = (answer.status(), answer.date());
        Ok(Answer { status, body: answer.bytes(bytes_max).await?, date })
    }

    /// Compresses on a separate thread, because the delivering thread serves other lanes.
    async fn packed(&self, kind: &'static str, body: Bytes) -> Result<Packed, Failure> {
        if !self.gzip || body.len() < GZIP_BYTES_MIN {
            return Ok(Packed { kind, body, is_gzip: false });
        }
        let packed = tokio::task::spawn_blocking(move || {
            let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
            encoder.write_all(&body)?;
            encoder.finish()
        });
        let packed = packed.await.map_err(|_| Failure::Closed)?;
        let body = packed.map_err(|error| Failure::Unexpected(format!("a request can't be compressed: {error}")))?;
        Ok(Packed { kind, body: body.into(), is_gzip: true })
    }
}

/// An encoded body.
struct Packed {
    kind: &'static str,
    body: Bytes,
    is_gzip: bool,
}

/// The body of a successful response.
fn success_body(status: StatusCode, body: Bytes) -> Result<Bytes, Failure> {
    if status.is_success() { Ok(body) } else { Err(Failure::Status(status, message(&body))) }
}

impl Node {
    fn new(endpoint: &Endpoint, config: &ElasticsearchConfig) -> Self {
        let account = || {
            let (user, password) = (endpoint.user.as_deref()?, endpoint.password.as_deref()?);
            Some(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
        };
        let said = config.api_key.as_ref().map(|key| format!("ApiKey {}", key.0)).or_else(account);
        let authorization = said.and_then(|said| HeaderValue::try_from(said).ok()).map(|mut value| {
            value.set_sensitive(true);
            value
        });
        Self { endpoint: endpoint.clone(), authorization }
    }
}

impl Version {
    fn check(&self) -> Result<(), Failure> {
        if self.distribution.is_some() {
            return Ok(());
        }
        let mut numbers = self.number.split('.').map(|number| number.parse().unwrap_or(0));
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        if version >= ELASTICSEARCH_MIN {
            return Ok(());
        }
        let (major, minor) = ELASTICSEARCH_MIN;
        Err(Failure::Misfit(format!("its version is {}: upgrade it to {major}.{minor} or later", self.number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_version_is_rejected() {
        let check = |number: &str, distribution: Option<&str>| {
            Version { number: number.to_owned(), distribution: distribution.map(str::to_owned) }.check().is_ok()
        };
        assert!(check("7.9.0", None) && check("9.1.2", None) && check("1.0.0", Some("opensearch")));
        assert!(!check("7.8.1", None) && !check("6.8.23", None) && !check("", None));
    }

    #[test]
    fn api_key_replaces_the_users_of_nodes() {
        let mut config = super::super::tests::config();
        config.nodes = "http://ann:s3cret@one,http://two".parse().unwrap();
        let said = |config: &ElasticsearchConfig| {
            let nodes = config.nodes.as_slice().iter().map(|node| Node::new(node, config).authorization);
            nodes.map(|value| value.map(|value| value.to_str().unwrap().to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(said(&config), [Some("Basic YW5uOnMzY3JldA==".to_owned()), None]);
        config.api_key = super::super::ApiKey::new("abc==");
        assert_eq!(said(&config), vec![Some("ApiKey abc==".to_owned()); 2]);
    }
}
