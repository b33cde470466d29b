//! The mark of a store: a document in an index without events.

use bytes::Bytes;
use http::{Method, StatusCode};
use serde::{Deserialize, Serialize};

use super::error::Failure;
use super::server::Server;
use sink::Mark;

const READ: &str = "/forebay-meta/_doc/mark";
/// Of several concurrent writers the first one creates it, and the others read it.
const MAKE: &str = "/forebay-meta/_create/mark?refresh=false";

#[derive(Deserialize, Serialize)]
struct Document {
    mark: String,
}

#[derive(Deserialize)]
struct Found {
    #[serde(rename = "_source")]
    source: Document,
}

/// Reads the mark, and creates it if the store has none.
pub(super) async fn of(server: &Server) -> Result<Mark, Failure> {
    if let Some(mark) = read(server).await? {
        return Ok(mark);
    }
    let mark = Mark::random().map_err(|error| Failure::Odd(format!("the system gives no random numbers: {error}")))?;
    let document = serde_json::to_vec(&Document { mark: mark.to_string() }).unwrap_or_default();
    let (status, said) = server.raw(Method::PUT, MAKE, Some(document.into())).await?;
    if !status.is_success() && status != StatusCode::CONFLICT {
        return Err(unmarked(status, &said));
    }
    read(server).await?.ok_or_else(|| Failure::Odd("the store's mark vanished while it was read".into()))
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
    found.map(Some).ok_or_else(|| Failure::Odd(format!("{READ} holds no mark: does another program write there?")))
}

/// Explains a refusal: `docs/elasticsearch.md` lists the privileges on this index.
fn unmarked(status: StatusCode, said: &Bytes) -> Failure {
    let words = super::error::words(said);
    if status == StatusCode::FORBIDDEN {
        return Failure::Unfit(format!(
            "its user may not use the index forebay-meta, whose document tells writers that they reach one store: grant create, read \
             and create_index on it ({words})"
        ));
    }
    Failure::Status(status, words)
}
