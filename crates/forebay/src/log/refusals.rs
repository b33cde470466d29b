//! Rejected events and requests in the log: a few lines per second, and the number of the others. No line has a value of an event in it.

use std::sync::Arc;
use std::time::Duration;

use gateway::{GatewayCounters, RefusalSample};

use super::UNLIMITED;
use crate::recent_refusals::RecentRefusals;

/// The pause between two checks for rejections.
const EVERY: Duration = Duration::from_secs(1);

/// Logs rejections for as long as the process runs, and keeps the last ones.
pub(crate) async fn follow(gateway: Arc<GatewayCounters>, recent: RecentRefusals) {
    loop {
        let news = gateway.refusal_news().await;
        news.samples.iter().for_each(write);
        if news.left_out > 0 {
            let message = "more were rejected; forebay_refusals_total counts all by code, type and source";
            tracing::info!(target: UNLIMITED, rejected = news.left_out, "{message}");
        }
        recent.keep(news);
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
