//! Examines a store: version, state, clock, rights to its index, and settings that lose events. It changes nothing.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;
use sink::Examination;

use super::config::{ElasticsearchConfig, IndexTarget};
use super::durability::Durability;
use super::error::{Failure, message};
use super::server::Server;

/// A line of `_cat/health`, whose numbers are texts.
#[derive(Deserialize)]
struct Health {
    epoch: String,
    status: String,
}

#[derive(Deserialize)]
struct Privileges {
    has_all_requested: bool,
}

/// Examines the store.
pub(super) async fn examine(config: &ElasticsearchConfig, server: &Server) -> Result<Examination, Failure> {
    let mut found = Examination::default();
    found.begin_clock();
    let about = server.check_version().await?;
    found.see(about.product.unwrap_or_else(|| "the store answers; the user may not read its version".to_owned()));
    if let Some(date) = about.date {
        found.compare_clock(date, Duration::from_secs(1));
    }
    check_health(server, &mut found).await?;
    if let Some(name) = config.index.only_name() {
        check_rights(config, server, name, &mut found).await?;
        let exists = server.has_index(name).await?;
        found.see(format!("{name} {}", if exists { "exists" } else { "doesn't exist yet" }));
    }
    Durability::default().prepare(config, server).await?;
    Ok(found)
}

/// Checks the state of the cluster, and its clock if no response has the time.
async fn check_health(server: &Server, found: &mut Examination) -> Result<(), Failure> {
    found.begin_clock();
    let (status, body) = server.raw(Method::GET, "/_cat/health?format=json", None).await?;
    let Ok([health]) = serde_json::from_slice::<[Health; 1]>(&body) else {
        found.skip(format!("the state of the cluster: it responded {status}: {}", message(&body)));
        return Ok(());
    };
    if found.clock_ahead.is_none()
        && let Ok(seconds) = health.epoch.parse()
    {
        found.compare_clock(Duration::from_secs(seconds), Duration::from_secs(1));
    }
    match health.status.as_str() {
        "red" => found.fail(
            "the cluster's state is red: some indices can't be written",
            "Start the missing nodes: GET /_cluster/allocation/explain shows the reason",
        ),
        state => found.see(format!("the cluster's state is {state}")),
    }
    Ok(())
}

/// Checks the rights to the index. Only Elasticsearch answers this, and only with its security enabled.
async fn check_rights(
    config: &ElasticsearchConfig,
    server: &Server,
    name: &str,
    found: &mut Examination,
) -> Result<(), Failure> {
    let wanted = if config.target == IndexTarget::DataStream { "create_doc" } else { "index" };
    let question = json!({"index": [{"names": [name], "privileges": [wanted, "read"]}]}).to_string();
    let (status, body) =
        server.raw(Method::POST, "/_security/user/_has_privileges", Some(Bytes::from(question))).await?;
    match (status, serde_json::from_slice::<Privileges>(&body)) {
        (StatusCode::OK, Ok(Privileges { has_all_requested: true })) => found.see(format!("the user may write {name}")),
        (StatusCode::OK, Ok(_)) => found.fail(
            format!("the user lacks `{wanted}` or `read` of {name}"),
            "Grant the user or key the privileges in docs/guides/stores/elasticsearch.md",
        ),
        _ => found.see("the server doesn't list the user's rights: the first write shows them"),
    }
    Ok(())
}
