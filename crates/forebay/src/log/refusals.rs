//! Rejected events and requests in the log: a few lines per second, and the number of the others. No line has a value of an event in it.

use std::sync::Arc;
use std::time::Duration;

use gateway::{GatewayCounters, RefusalNews, RefusalSample};

use super::UNLIMITED;

/// The pause between two checks for rejections.
const EVERY: Duration = Duration::from_secs(1);

/// Logs rejections for as long as the process runs.
pub(crate) async fn follow(gateway: Arc<GatewayCounters>) {
    loop {
        let RefusalNews { samples, left_out } = gateway.refusal_news().await;
        samples.iter().for_each(write);
        if left_out > 0 {
            let message = "more were rejected; forebay_refusals_total counts all by code, type and source";
            tracing::info!(target: UNLIMITED, rejected = left_out, "{message}");
        }
        tokio::time::sleep(EVERY).await;
    }
}

fn write(sample: &RefusalSample) {
    let RefusalSample { at, code, pointer, type_name, source, client, line } = sample;
    tracing::info!(
        target: UNLIMITED, time = *at, code = code.as_str(), "type" = known(type_name), source = known(source), %client,
        pointer = pointer.as_deref(), line, "rejected"
    );
}

fn known(name: &str) -> Option<&str> {
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use gateway::ErrorCode;
    use testkit::logged::Logged;

    use super::*;

    #[test]
    fn line_has_the_known_fields_only() {
        let logged = Logged::start();
        write(&RefusalSample {
            at: 7,
            code: ErrorCode::Schema,
            pointer: Some("/a \"b".into()),
            type_name: "orders".into(),
            source: "shop".into(),
            client: [10, 0, 0, 7].into(),
            line: Some(3),
        });
        write(&RefusalSample {
            at: 0,
            code: ErrorCode::Unauthorized,
            pointer: None,
            type_name: "".into(),
            source: "".into(),
            client: std::net::Ipv6Addr::LOCALHOST.into(),
            line: None,
        });
        let expected = [
            "rejected time=7 code=schema type=orders source=shop client=10.0.0.7 pointer=/a \"b line=3",
            "rejected time=0 code=unauthorized client=::1",
        ];
        assert_eq!(logged.lines(), expected);
    }
}
