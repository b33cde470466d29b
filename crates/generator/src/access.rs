//! Lines of a web server's access log.

use super::{Random, Writer};

const METHODS: [&str; 8] = ["GET", "GET", "GET", "GET", "GET", "GET", "POST", "HEAD"];
const STATUSES: [u64; 12] = [200, 200, 200, 200, 200, 200, 200, 200, 206, 301, 304, 404];
const PATHS: [&str; 10] = [
    "/",
    "/articles/how-a-forebay-works/",
    "/articles/how-a-forebay-works/images/figure-03-intake-gate.png",
    "/articles/measuring-a-river/",
    "/downloads/annual-report/volume-02-turbines-and-gates.pdf",
    "/images/dam-from-the-south-evening.jpg",
    "/search/results",
    "/styles/main.css",
    "/scripts/gauge-plot.js",
    "/feeds/articles.xml",
];
const REFERRERS: [&str; 7] = [
    "null",
    "null",
    "null",
    "\"https://www.example.org/articles/how-a-forebay-works/\"",
    "\"https://search.example.net/find?q=river+gauge+readings+today\"",
    "\"https://news.example.com/2026/hydrology/the-basin-in-front-of-the-dam.html\"",
    "\"https://www.example.org/articles/measuring-a-river/\"",
];
const AGENTS: [&str; 6] = [
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (compatible; ExampleBot/2.1; +https://bot.example.com/about.html)",
    "curl/8.16.0",
];

pub(super) fn write(out: &mut Writer<'_>, random: &mut Random, number: u64) {
    // Documentation addresses (RFC 5737): they are assigned to no host.
    let network = random.pick(&["192.0.2.", "198.51.100.", "203.0.113."]);
    out.text("{\"type\":\"access\",\"time\":\"").time(number / 20);
    out.text("\",\"client\":\"").text(network).number(random.below(254) + 1);
    out.text("\",\"method\":\"").text(random.pick(&METHODS));
    out.text("\",\"path\":\"").text(random.pick(&PATHS)).text("?visit=").number(number);
    out.text("\",\"protocol\":\"HTTP/1.1\"").member("status", random.pick(&STATUSES)).member("bytes", random.size(22));
    out.text(",\"referrer\":").text(random.pick(&REFERRERS));
    out.text(",\"agent\":\"").text(random.pick(&AGENTS)).text("\"}");
}
