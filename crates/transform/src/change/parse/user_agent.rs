//! A short description of a `User-Agent`, by the rules below. They know the browsers, systems and robots that make up
//! most of the traffic, and don't report others.

use super::Members;

/// Words of programs that identify themselves; the first match counts.
const ROBOTS: [&str; 8] =
    ["bot", "crawler", "spider", "slurp", "feedfetcher", "facebookexternalhit", "monitor", "headless"];
/// Programs, by the word before their version. The first match counts, since later ones also occur in the headers of
/// earlier ones.
const PROGRAMS: [(&str, &str); 16] = [
    ("Edg/", "Edge"),
    ("EdgA/", "Edge"),
    ("EdgiOS/", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Vivaldi/", "Vivaldi"),
    ("CriOS/", "Chrome"),
    ("FxiOS/", "Firefox"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Version/", "Safari"),
    ("MSIE ", "Internet Explorer"),
    ("curl/", "curl"),
    ("Wget/", "Wget"),
    ("python-requests/", "Python Requests"),
    ("Go-http-client/", "Go"),
];
/// Systems, with the words by which they are known.
const SYSTEMS: [(&str, &str); 9] = [
    ("Windows", "Windows"),
    ("Android", "Android"),
    ("iPhone", "iOS"),
    ("iPad", "iOS"),
    ("CrOS", "ChromeOS"),
    ("Mac OS X", "macOS"),
    ("Macintosh", "macOS"),
    ("Linux", "Linux"),
    ("FreeBSD", "FreeBSD"),
];

/// `device` is always there: robot, phone, tablet, desktop or other.
pub(super) fn parse(text: &str, out: &mut String) {
    let lower = text.to_ascii_lowercase();
    let is_robot = ROBOTS.iter().any(|word| lower.contains(word));
    let system = SYSTEMS.iter().find(|(word, _)| text.contains(word)).map(|(_, system)| *system);
    let program = PROGRAMS.iter().find(|(word, name)| {
        // Only Safari has its version under this word.
        text.contains(word) && (*name != "Safari" || text.contains("Safari/"))
    });
    let device = match system {
        _ if is_robot => "robot",
        Some("Android") if text.contains("Mobile") => "phone",
        Some("Android") => "tablet",
        Some("iOS") if text.contains("iPad") => "tablet",
        Some("iOS") => "phone",
        Some(_) => "desktop",
        None => "other",
    };
    let mut members = Members::begin(out);
    members.string("device", device);
    members.some("system", system);
    if let Some((word, name)) = program {
        members.string("browser", name);
        members.some("version", version(text, word));
    }
    members.end();
}

/// The digits and points after a word.
fn version<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(word)?;
    let end = rest.find(|other: char| !other.is_ascii_digit() && other != '.').unwrap_or(rest.len());
    Some(&rest[..end]).filter(|version| !version.is_empty())
}
