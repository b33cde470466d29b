//! Which names may be read: those that Forebay assigns to objects of a sink. So no name reaches outside a container or
//! a directory, or the objects of other programs.

use std::sync::Arc;

use event::{EventId, Origin, Position};

use crate::manifest::TOKEN;
use crate::side_folder::MANIFEST as DESCRIBED;
use crate::{Codec, Prefix, SideFolder};

/// Stores accept names of 1,024 bytes.
const BYTES_MAX: usize = 1024;

/// The events of an object by its name: the event of an attachment, or else the first event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectPlace {
    /// The id of the gateway that they come from.
    pub origin: Origin,
    /// Their position in its journal.
    pub position: Position,
}

impl ObjectPlace {
    /// The place of an object with this name, if an object of any sink can have it. The manifests of a directory may be
    /// in any folder: a gateway chooses it.
    pub(crate) fn of(name: &str, has_folders: bool) -> Option<Self> {
        let is_described = name.ends_with(DESCRIBED);
        let file = name.rsplit('/').next().unwrap_or_default();
        // Hidden files are files that a directory is writing.
        if !has_folders && (name.starts_with('.') || file.starts_with('.')) {
            return None;
        }
        place(name, has_folders || is_described, |before| !before.is_empty())
    }
}

/// The names of a sink's objects.
pub(super) struct Names {
    pub(super) sink: Arc<str>,
    /// Their current prefix. It may have been another one before.
    pub(super) prefix: Prefix,
    /// The current folder of manifests. Older ones may be next to their objects.
    pub(super) manifests: SideFolder,
    /// The current folder of attachments.
    pub(super) parts: SideFolder,
    /// Whether names may contain a folder.
    pub(super) has_folders: bool,
}

impl Names {
    /// The place of an object with this name, if an object of this sink can have it: lines, a description, or an
    /// attachment.
    pub(super) fn place(&self, name: &str) -> Option<ObjectPlace> {
        // In a container any name may have folders, in a directory only those of manifests.
        let manifest = self.manifests.strip(name).filter(|rest| rest.ends_with(DESCRIBED));
        let part = self.parts.strip(name).filter(|_| self.has_folders);
        let plain = manifest.or(part).filter(|_| is_path(name)).unwrap_or(name);
        place(plain, self.has_folders, |before| self.is_before(before))
    }

    /// A sink's name may be the end of another's: it is preceded by nothing, a folder, or the configured prefix.
    fn is_before(&self, text: &str) -> bool {
        let before = text.strip_suffix(&*self.sink);
        before.is_some_and(|before| before.is_empty() || before.ends_with('/') || self.prefix.can_be(before))
    }
}

/// The place of an object with this name. `is_before` checks the part before the time: the prefix and the sink's name.
fn place(name: &str, has_folders: bool, is_before: impl Fn(&str) -> bool) -> Option<ObjectPlace> {
    if !is_path(name) || (name.contains('/') && !has_folders) {
        return None;
    }
    if let Some((stem, last)) = name.rsplit_once('/')
        && let Some(sequence) = apart(last)
    {
        let ObjectPlace { origin, position } = of_stem(stem, is_before)?;
        return Some(ObjectPlace { origin, position: Position { sequence, ..position } });
    }
    let lines = name.strip_suffix(DESCRIBED).unwrap_or(name);
    let stem = Codec::ALL.iter().find_map(|codec| lines.strip_suffix(codec.ending()))?;
    of_stem(stem, is_before)
}

/// `SINK-TIME-ORIGIN-SHARD-FIRST-TOKEN`, after the prefix. Older names have no token.
fn of_stem(stem: &str, is_before: impl Fn(&str) -> bool) -> Option<ObjectPlace> {
    let stem = stem.rsplit_once('-').filter(|(_, last)| is_token(last)).map_or(stem, |(before, _)| before);
    let mut parts = stem.rsplitn(5, '-');
    let sequence = number(parts.next()?, 20)?;
    let shard = number(parts.next()?, 4)?;
    let origin = origin(parts.next()?)?;
    let is_of_sink = is_time(parts.next()?) && is_before(parts.next()?);
    let position = Position { shard: u16::try_from(shard).ok()?, sequence };
    is_of_sink.then_some(ObjectPlace { origin, position })
}

fn is_path(name: &str) -> bool {
    name.len() <= BYTES_MAX && name.split('/').all(is_part)
}

fn is_part(part: &str) -> bool {
    let is_plain = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-=".contains(&byte));
    is_plain && !matches!(part, "" | "." | "..")
}

/// Whether it identifies a process that uses a data directory.
fn is_token(text: &str) -> bool {
    text.len() == TOKEN && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// 32 digits in their only form.
fn origin(text: &str) -> Option<Origin> {
    text.parse().ok().filter(|origin: &Origin| origin.to_string() == text)
}

/// `20261121T130000Z`.
fn is_time(text: &str) -> bool {
    let parts = text.strip_suffix('Z').and_then(|text| text.split_once('T'));
    parts.is_some_and(|(day, time)| number(day, 8).is_some() && number(time, 6).is_some())
}

/// `SEQUENCE-ID`: an attachment.
fn apart(text: &str) -> Option<u64> {
    let (sequence, id) = text.split_once('-')?;
    let is_id = id.parse().is_ok_and(|parsed: EventId| parsed.to_string() == id);
    number(sequence, 20).filter(|_| is_id)
}

/// A number of this many digits.
fn number(text: &str, digits: usize) -> Option<u64> {
    let are_digits = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| are_digits)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use event::Lane;

    use super::*;
    use crate::{Codec, Line, Manifest, ObjectFormat, Portion};
    use sink::Claim;

    fn name(sink: &str, codec: Codec, prefix: &str) -> String {
        named(sink, codec, prefix, None)
    }

    fn named(sink: &str, codec: Codec, prefix: &str, claim: Option<Claim>) -> String {
        let lane = Lane { origin: Origin([0xab; 16]), shard: 3, sink: sink.into() };
        let age_max = Duration::from_secs(1);
        let (line, prefix) = (Line::Payload, prefix.parse().unwrap());
        let manifests = SideFolder::NONE;
        let rules = ObjectFormat { line, codec, bytes_max: 1, records_max: 1, age_max, prefix, apart: None, manifests };
        let portion = Portion::received("access", 1_760_000_000_123_456);
        Manifest::new(lane, 12..=90, portion, &rules, None, claim).name
    }

    fn names(sink: &str, prefix: &str) -> Names {
        let (manifests, parts) = (SideFolder::manifests(), SideFolder::parts());
        Names { sink: sink.into(), prefix: prefix.parse().unwrap(), manifests, parts, has_folders: true }
    }

    #[test]
    fn names_of_stored_objects_are_readable() {
        let claim = Some(Claim([0x17; 16]));
        for (codec, prefix, claim) in [
            (Codec::None, "", None),
            (Codec::Gzip, "a/day={day}/{type}/", claim),
            (Codec::Zstd, "{type}-{hour}", claim),
        ] {
            let lines = named("a-b", codec, prefix, claim);
            let stem = lines.split(".ndjson").next().unwrap();
            let apart = format!("{stem}/00000000000000000017-11111111-1111-1111-1111-111111111111");
            let described = format!("{lines}.manifest.json");
            let in_folder = format!("_manifests/{described}");
            let in_parts = format!("_parts/{apart}");
            for (name, sequence) in [(lines.clone(), 12), (described, 12), (in_folder, 12), (apart, 17), (in_parts, 17)]
            {
                let position = Position { shard: 3, sequence };
                let place = ObjectPlace { origin: Origin([0xab; 16]), position };
                assert_eq!(names("a-b", prefix).place(&name), Some(place), "{name}");
                for other in ["other", "b", "aa-b"] {
                    assert_eq!(names(other, prefix).place(&name), None, "{name} of {other}");
                }
            }
        }
    }

    #[test]
    fn earlier_folders_are_readable_but_not_other_prefixes() {
        let before = name("archive", Codec::None, "old/{day}/");
        assert!(names("archive", "new/").place(&before).is_some());
        let directory = Names { has_folders: false, ..names("archive", "") };
        assert!(directory.place(&before).is_none());
        let file = name("archive", Codec::None, "");
        assert!(directory.place(&file).is_some());
        let described = format!("{file}.manifest.json");
        assert!(directory.place(&described).is_some(), "it may be older than the folder");
        assert!(directory.place(&format!("_manifests/{described}")).is_some());
        for other in [format!("_manifests/{file}"), format!("other/{described}"), format!("_manifests/../{described}")]
        {
            assert!(directory.place(&other).is_none(), "{other}");
        }
        // A gateway chooses its folder.
        let of_any = |name: &str| ObjectPlace::of(name, false).is_some();
        assert!(of_any(&format!("other/{described}")) && !of_any(&format!("other/{file}")));
        assert!(!of_any(&format!("../{described}")) && !of_any(&format!("other/.{described}")));
        assert!(names("archive", "new-").place(&name("archive", Codec::None, "old-")).is_none());
    }

    #[test]
    fn other_names_are_not_readable() {
        let name = name("archive", Codec::None, "");
        let id = "1111111a-1111-1111-1111-111111111111";
        let stem = name.strip_suffix(".ndjson").unwrap();
        assert!(names("archive", "").place(&format!("{stem}/00000000000000000012-{id}")).is_some());
        for other in [
            String::new(),
            "events.db".to_owned(),
            "../journal/0".to_owned(),
            format!("/{name}"),
            format!("../{name}"),
            format!("a/../{name}"),
            format!("./{name}"),
            format!("a//{name}"),
            format!("%2e%2e/{name}"),
            format!("..%2f{name}"),
            format!("a\\{name}"),
            format!("a\0{name}"),
            format!("é{name}"),
            format!("{name}/"),
            format!("{name}/.."),
            format!("{name}.bak"),
            format!("{name}.manifest.json.manifest.json"),
            format!("{name}?x"),
            format!("x{name}"),
            format!(".{name}.partial"),
            format!("{stem}/00000000000000000012-{}", id.to_uppercase()),
            format!("{stem}/00000000000000000012-{}", id.replace('-', "")),
            format!("{stem}/+0000000000000000012-{id}"),
            format!("{stem}/99999999999999999999-{id}"),
            name.replace("abab", "ABab"),
            name.replace("-0003-", "-003-"),
            name.replace(".ndjson", ""),
            name.replace(".ndjson", "-ABABABABABABABAB.ndjson"),
            name.replace(".ndjson", "-abababababababab-abababababababab.ndjson"),
            format!("{}{name}", "a/".repeat(600)),
        ] {
            assert_eq!(names("archive", "").place(&other), None, "{other}");
            // A sink of a gateway may be called `xarchive`.
            assert_eq!(ObjectPlace::of(&other, false).is_some(), other == format!("x{name}"), "{other}");
        }
    }
}
