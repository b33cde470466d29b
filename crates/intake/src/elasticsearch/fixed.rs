//! Fixed responses: what senders ask before they post.

use json::text::string;
use limits::BATCH_BYTES_MAX;

use crate::{IntakeHead, Reply};

use super::media;
use super::version::Version;

/// The name of the cluster and its only node.
const NAME: &str = "forebay";
/// Clients compare it, and never read it.
const UUID: &str = "Zm9yZWJheS1pbnRha2UtMQ";
/// What Filebeat's modules look for before they load pipelines. No pipeline runs: see the guide.
const PROCESSORS: &[&str] = &["geoip", "user_agent", "date", "grok", "rename", "set", "remove", "script"];

/// `GET /`: the version decides which requests a client sends.
pub(super) fn root(version: &Version, media: &'static str) -> Reply {
    let version = version.as_str();
    let body = format!(
        concat!(
            r#"{{"name":"{name}","cluster_name":"{name}","cluster_uuid":"{uuid}","version":{{"number":"{version}","#,
            r#""build_flavor":"default","build_type":"tar","build_hash":"0000000000000000000000000000000000000000","#,
            r#""build_date":"2026-01-01T00:00:00.000000000Z","build_snapshot":false,"lucene_version":"9.12.2","#,
            r#""minimum_wire_compatibility_version":"7.17.0","minimum_index_compatibility_version":"7.0.0"}},"#,
            r#""tagline":"You Know, for Search"}}"#
        ),
        name = NAME,
        uuid = UUID,
        version = version
    );
    media::json(200, media, body)
}

/// `GET /_license`: Beats and Logstash need an active one.
pub(super) fn license(media: &'static str) -> Reply {
    let body = format!(
        concat!(
            r#"{{"license":{{"status":"active","uid":"{}","type":"basic","issue_date":"2026-01-01T00:00:00.000Z","#,
            r#""issue_date_in_millis":1767225600000,"max_nodes":1000,"issued_to":"{}","issuer":"{}","#,
            r#""start_date_in_millis":-1}}}}"#
        ),
        UUID, NAME, NAME
    );
    media::json(200, media, body)
}

/// `GET /_xpack`: Logstash checks whether policies are available.
pub(super) fn features(media: &'static str) -> Reply {
    let body = format!(
        concat!(
            r#"{{"build":{{"hash":"0","date":"2026-01-01T00:00:00.000Z"}},"#,
            r#""license":{{"uid":"{}","type":"basic","mode":"basic","status":"active"}},"#,
            r#""features":{{"data_streams":{{"available":true,"enabled":true}},"ilm":{{"available":true,"enabled":true}},"#,
            r#""monitoring":{{"available":false,"enabled":false}},"security":{{"available":true,"enabled":true}}}},"#,
            r#""tagline":"You know, for X"}}"#
        ),
        UUID
    );
    media::json(200, media, body)
}

/// `GET /_cluster/health`.
pub(super) fn health(media: &'static str) -> Reply {
    let body = format!(
        concat!(
            r#"{{"cluster_name":"{}","status":"green","timed_out":false,"number_of_nodes":1,"#,
            r#""number_of_data_nodes":1,"active_primary_shards":1,"active_shards":1,"relocating_shards":0,"#,
            r#""initializing_shards":0,"unassigned_shards":0,"delayed_unassigned_shards":0,"#,
            r#""number_of_pending_tasks":0,"number_of_in_flight_fetch":0,"#,
            r#""task_max_waiting_in_queue_millis":0,"active_shards_percent_as_number":100.0}}"#
        ),
        NAME
    );
    media::json(200, media, body)
}

/// `GET /_cat/health`: a line of text, or JSON.
pub(super) fn health_line(head: &IntakeHead<'_>) -> Reply {
    let seconds = head.received_at.div_euclid(1_000_000);
    let of_day = seconds.rem_euclid(86_400);
    let time = format!("{:02}:{:02}:{:02}", of_day / 3_600, of_day / 60 % 60, of_day % 60);
    let wants_json = match head.parameter("format") {
        Some(format) => format == "json",
        None => {
            let accepted = head.header("accept").unwrap_or_default();
            accepted.contains("json") && !accepted.contains("text/plain")
        }
    };
    if !wants_json {
        let line = format!("{seconds} {time} {NAME} green 1 1 1 1 0 0 0 0 0 - 100.0%\n");
        return media::product(Reply::text(200, line));
    }
    let body = format!(
        r#"[{{"epoch":"{seconds}","timestamp":"{time}","cluster":"{NAME}","status":"green","node.total":"1","node.data":"1"}}]"#
    );
    media::json(200, media::of(head), body)
}

/// `GET /_nodes/http`: senders that look for nodes find the address that they have used.
pub(super) fn nodes(version: &Version, head: &IntakeHead<'_>) -> Reply {
    let host = head.header("host").unwrap_or("127.0.0.1");
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let port = if head.has_tls { ":443" } else { ":80" };
    let address = string(&format!("{host}{}", if has_port { "" } else { port }));
    let processors: Vec<String> = PROCESSORS.iter().map(|name| format!(r#"{{"type":"{name}"}}"#)).collect();
    let body = format!(
        concat!(
            r#"{{"_nodes":{{"total":1,"successful":1,"failed":0}},"cluster_name":"{name}","nodes":{{"{name}":{{"#,
            r#""name":"{name}","transport_address":{address},"host":{address},"version":"{version}","#,
            r#""build_flavor":"default","roles":["data","ingest","master"],"http":{{"bound_address":[{address}],"#,
            r#""publish_address":{address},"max_content_length_in_bytes":{bytes}}},"#,
            r#""ingest":{{"processors":[{processors}]}}}}}}}}"#
        ),
        name = NAME,
        address = address,
        version = version.as_str(),
        bytes = BATCH_BYTES_MAX,
        processors = processors.join(",")
    );
    media::json(200, media::of(head), body)
}
