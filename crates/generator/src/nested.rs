//! States of a server: nested objects and arrays.

use super::{Random, Writer};

const ZONES: [&str; 8] = [
    "maps.example.org",
    "docs.example.com",
    "www.example.org",
    "api.example.org",
    "static.example.org",
    "hg.example.org",
    "mail.example.com",
    "*",
];
const GROUPS: [(&str, u64); 3] = [("www-backend", 4), ("api-backend", 6), ("mail-backend", 2)];

pub(super) fn write(out: &mut Writer<'_>, random: &mut Random, number: u64) {
    out.text("{\"type\":\"server_status\",\"version\":8,\"host\":\"edge-").number(random.below(40));
    out.text(".example.org\"").member("report", number).text(",\"time\":\"").time(number.wrapping_mul(10)).text("\"");
    out.text(",\"connections\":{\"accepted\":").number(random.size(40)).member("dropped", random.size(6));
    out.member("active", random.size(12)).member("idle", random.size(14)).text("}");
    out.text(",\"tls\":{\"handshakes\":").number(random.size(36)).member("failed", random.size(16));
    out.member("reused", random.size(30)).text("},\"zones\":{");
    for (at, zone) in ZONES.iter().enumerate() {
        out.text(comma(at)).text("\"").text(zone).text("\":{\"processing\":").number(random.size(5));
        counters(out, random);
        out.text("}");
    }
    out.text("},\"upstreams\":{");
    for (at, (name, peers)) in GROUPS.iter().enumerate() {
        out.text(comma(at)).text("\"").text(name).text("\":{\"peers\":[");
        for peer in 0..*peers {
            out.text(if peer == 0 { "" } else { "," });
            write_peer(out, random, peer);
        }
        out.text("]").member("keepalive", random.size(7)).text("}");
    }
    out.text("}}");
}

const fn comma(at: usize) -> &'static str {
    if at == 0 { "" } else { "," }
}

fn counters(out: &mut Writer<'_>, random: &mut Random) {
    out.member("requests", random.size(36)).text(",\"responses\":{\"1xx\":").number(random.size(4));
    out.member("2xx", random.size(36)).member("3xx", random.size(28)).member("4xx", random.size(24));
    out.member("5xx", random.size(16)).text("}");
    out.member("received", random.size(44)).member("sent", random.size(46));
}

fn write_peer(out: &mut Writer<'_>, random: &mut Random, peer: u64) {
    out.text("{\"id\":").number(peer).text(",\"server\":\"192.0.2.").number(peer + 1).text(":8080\"");
    out.text(",\"backup\":").text(random.pick(&["false", "false", "true"]));
    out.member("weight", 1 + random.below(4)).text(",\"state\":\"");
    out.text(random.pick(&["up", "up", "up", "draining", "unhealthy"])).text("\"");
    counters(out, random);
    out.text(",\"load\":0.").number(1 + random.below(99)).text(",\"health\":{\"checks\":").number(random.size(20));
    out.member("failed", random.size(8))
        .text(",\"last_passed\":")
        .text(random.pick(&["true", "true", "false", "null"]));
    out.text("}").member("downtime", random.size(20)).text("}");
}
