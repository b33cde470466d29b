//! The store id (mark) of a store: a document in an index without events.

use bytes::Bytes;
use http::{Method, StatusCode};
use serde::{Deserialize, Serialize};

use super::error::Failure;
use super::server::Server;
use sink::Mark;

const READ: &str = "/forebay-meta/_doc/mark";
/// Of several concurrent writers the first one creates it, and the others read it.
const CREATE: &str = "/forebay-meta/_create/mark?refresh=false";

#[derive(Deserialize, Serialize)]
struct Document {
    mark: String,
}

#[derive(Deserialize)]
struct Found {
    #[serde(rename = "_source")]
    source: Document,
}

/// Reads the store id, and creates it if the store has none.
pub(super) async fn of(server: &Server) -> Result<Mark, Failure> {
    if let Some(mark) = read(server).await? {
        return Ok(mark);
    }
    let mark = Mark::random().map_err(|error| {
        Failure::Unexpected(format!(
            "the operating system returned no random numbers: \
             {error}"
        ))
    })?;
    let document = serde_json::to_vec(&Document { mark: mark.to_string() }).unwrap_or_default();
    let (status, said) = server.raw(Method::PUT, CREATE, Some(document.into())).await?;
    if !status.is_success() && status != StatusCode::CONFLICT {
        return Err(unmarked(status, &said));
    }
    read(server)
        .await?
        .ok_or_else(|| Failure::Unexpected("the store id in forebay-meta disappeared while Forebay read it".into()))
}

async fn read(server: &Server) -> Result<Option<Mark>, Failure> {
    let (status, body) = server.raw(Method::GET, READ, None).await?;
    if status == StatusCode::NOT_FOUND {
        return Ok(None);
    }
    if !status.is_success() {
        return Err(unmarked(status, &body));
    }
    let found = serde_json::from_slice::<Found>(&body).ok().and_then(|found| found.source.mark.parse().ok());
    found.map(Some).ok_or_else(|| {
        Failure::Unexpected(format!(
            "{READ} has no store id: check whether another program writes \
             there"
        ))
    })
}

/// Explains a rejection: `docs/guides/stores/elasticsearch.md` lists the privileges on this index.
fn unmarked(status: StatusCode, said: &Bytes) -> Failure {
    let message = super::error::message(said);
    if status == StatusCode::FORBIDDEN {
        return Failure::Misfit(format!(
            "its user may not use the index forebay-meta, which holds the store id: grant create, read and \
             create_index on it ({message})"
        ));
    }
    Failure::Status(status, message)
}
