//! What is made durable before an object is written, as lines of words:
//!
//! ```text
//! forebay-object 1                     the version
//! run 1 100                            its first and last position
//! received 1760000000123456            when the first of its events was received
//! codec zstd
//! name archive-…                       its name in the store
//! previous archive-…                   that of the lane's object before it, or `-`
//! line payload                         its lines are payloads; else they are envelopes, as they always were at first
//! apart /image                         where of a payload an object of its own is made of, if anywhere
//! apart-type /image_type               where its content type stands, if anywhere
//! apart-folder _parts                  the folder of these objects; without this line they are below the object, as they always were at first
//! description _manifests/archive-…     the name of its description; without this line it is beside the object, as it always was at first
//! period day 20384                     the day or hour that its events have, if it holds those of one
//! keep access 0 -                      a type: its events after the first and up to the second position, or `-`
//! gap access 3 7                       but for those after the first and up to the second position
//! when access 0 status >= 500          those of them behind this position on which this is true; `-` for all
//! ```
//!
//! One after the other for each object that is on its way to the store; those with the same positions are committed together. Checksum and generations are the state file's.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::str::{FromStr, SplitWhitespace};
use std::sync::Arc;

use dead_letters::{Blocked, DeliveryFiles};
use event::Lane;
use eventlog::{Reserve, StateFile, make_directory};
use ledger::{Passage, read_condition as read, written_condition as written};
use objects::{AttachmentRule, Line, Manifest, SideFolder};

const DIRECTORY: &str = "objects";
const HEADING: &str = "forebay-object 1";
const PAYLOAD: &str = "line payload";

/// The events that are kept of each type.
pub(crate) type Kept = BTreeMap<String, Passage>;

/// A run of positions, and the objects that hold its events: one, or one for each type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectIntent {
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// When the first of its events was received.
    pub(crate) received_at: i64,
    pub(crate) objects: Vec<Object>,
}

/// An object as it is fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) manifest: Manifest,
    pub(crate) kept: Kept,
}

impl ObjectIntent {
    fn of(object: Object) -> Self {
        let Manifest { first, last, received_at, .. } = object.manifest;
        Self { first, last, received_at, objects: vec![object] }
    }

    /// Takes another object of the same run, or gives it back.
    fn take(&mut self, object: Object) -> Option<Object> {
        if (object.manifest.first, object.manifest.last) != (self.first, self.last) {
            return Some(object);
        }
        self.received_at = self.received_at.min(object.manifest.received_at);
        self.objects.push(object);
        None
    }

    /// Objects one behind the other, those of a run together.
    pub(crate) fn gather(objects: impl IntoIterator<Item = Object>) -> Vec<Self> {
        objects.into_iter().fold(Vec::new(), |mut gathered, object| {
            let rest = match gathered.last_mut() {
                Some(last) => Self::take(last, object),
                None => Some(object),
            };
            gathered.extend(rest.map(Self::of));
            gathered
        })
    }

    fn encode(&self) -> String {
        self.objects.iter().map(Object::encode).collect()
    }

    /// Reads what [`ObjectIntent::encode`] wrote for runs of `lane`, one behind the other.
    fn decode_all(text: &str, lane: &Lane) -> Option<Vec<Self>> {
        let texts = text.strip_prefix(HEADING)?.strip_prefix('\n')?;
        let objects: Option<Vec<Object>> =
            texts.split(&format!("\n{HEADING}\n")).map(|text| Object::decode(text, lane)).collect();
        Some(Self::gather(objects?))
    }

    /// The names of its objects.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.objects.iter().map(|object| &*object.manifest.name).collect();
        names.join(", ")
    }
}

impl Object {
    fn encode(&self) -> String {
        let Manifest { first, last, received_at, line, codec, name, apart, previous, description, period, .. } =
            &self.manifest;
        let previous = previous.as_deref().unwrap_or("-");
        let mut text = format!(
            "{HEADING}\nrun {first} {last}\nreceived {received_at}\ncodec {codec}\nname {name}\nprevious {previous}\n"
        );
        // Writing to a string can't fail.
        if *line == Line::Payload {
            let _ = writeln!(text, "{PAYLOAD}");
        }
        if let Some(AttachmentRule { data, content_type, folder }) = apart {
            // Pointers have no line breaks: configurations refuse them.
            let _ = writeln!(text, "apart {data}");
            let _ = content_type.as_ref().map(|pointer| writeln!(text, "apart-type {pointer}"));
            if *folder != SideFolder::BESIDE {
                let _ = writeln!(text, "apart-folder {folder}");
            }
        }
        if *description != SideFolder::BESIDE.manifest_of(name) {
            let _ = writeln!(text, "description {description}");
        }
        if let Some(period) = period {
            let _ = writeln!(text, "period {period}");
        }
        for (name, Passage { after, until, conditions, gaps }) in &self.kept {
            let until = if *until == u64::MAX { "-".to_owned() } else { until.to_string() };
            let _ = writeln!(text, "keep {name} {after} {until}");
            for (after, until) in gaps {
                let _ = writeln!(text, "gap {name} {after} {until}");
            }
            for (after, when) in conditions {
                let _ = writeln!(text, "when {name} {after} {}", written(when.as_ref()));
            }
        }
        text
    }

    /// Reads one without its heading.
    fn decode(text: &str, lane: &Lane) -> Option<Self> {
        let mut lines = text.lines();
        let mut fact = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ').map(str::split_whitespace);
        let mut run = fact("run")?;
        let mut manifest = Manifest {
            lane: lane.clone(),
            first: word(&mut run)?,
            last: word(&mut run)?,
            received_at: word(&mut fact("received")?)?,
            line: Line::Envelope,
            codec: word(&mut fact("codec")?)?,
            name: word(&mut fact("name")?)?,
            apart: None,
            previous: word(&mut fact("previous")?).filter(|name: &String| name != "-"),
            description: String::new(),
            period: None,
        };
        manifest.description = SideFolder::BESIDE.manifest_of(&manifest.name);
        let mut kept = Kept::new();
        for line in lines {
            if let Some(line) = line.strip_prefix("keep ") {
                let (name, passage) = keep(line)?;
                kept.insert(name, passage);
            } else if line == PAYLOAD {
                manifest.line = Line::Payload;
            } else if let Some(pointer) = line.strip_prefix("apart ") {
                manifest.apart =
                    Some(AttachmentRule { data: pointer.into(), content_type: None, folder: SideFolder::BESIDE });
            } else if let Some(pointer) = line.strip_prefix("apart-type ") {
                manifest.apart.as_mut()?.content_type = Some(pointer.into());
            } else if let Some(folder) = line.strip_prefix("apart-folder ") {
                manifest.apart.as_mut()?.folder = folder.parse().ok()?;
            } else if let Some(name) = line.strip_prefix("description ") {
                name.clone_into(&mut manifest.description);
            } else if let Some(period) = line.strip_prefix("period ") {
                manifest.period = Some(period.parse().ok()?);
            } else if let Some(line) = line.strip_prefix("gap ") {
                let mut words = line.split_whitespace();
                let passage = kept.get_mut(words.next()?)?;
                passage.gaps.push((word(&mut words)?, word(&mut words)?));
            } else {
                let mut words = line.strip_prefix("when ")?.splitn(3, ' ');
                let passage = kept.get_mut(words.next()?)?;
                passage.conditions.push((words.next()?.parse().ok()?, read(words.next()?)?));
            }
        }
        Some(Self { manifest, kept })
    }
}

fn keep(text: &str) -> Option<(String, Passage)> {
    let mut words = text.split_whitespace();
    let name = words.next()?.to_owned();
    let after = word(&mut words)?;
    let until = match words.next()? {
        "-" => u64::MAX,
        until => until.parse().ok()?,
    };
    words.next().is_none().then_some((name, Passage { after, until, conditions: Vec::new(), gaps: Vec::new() }))
}

fn word<T: FromStr>(words: &mut SplitWhitespace<'_>) -> Option<T> {
    words.next()?.parse().ok()
}

/// Where a lane's newest intents stand.
pub(crate) struct IntentLog {
    file: StateFile,
    reserve: Arc<Reserve>,
    open: Vec<ObjectIntent>,
}

impl IntentLog {
    /// Opens the file of `lane`, and says what of it is damaged.
    pub(crate) fn of(files: &DeliveryFiles, lane: &Lane) -> Result<(Self, Vec<String>), Blocked> {
        let directory = files.data.join(DIRECTORY);
        let name = format!("{}.{:04}", lane.sink, lane.shard);
        let path = directory.join(&name);
        let opened = make_directory(&*files.disk, &directory)
            .and_then(|()| StateFile::open(files.disk.clone(), &directory, &name));
        let (file, state) =
            opened.map_err(|error| Blocked::Retry(format!("can't read the manifest {}: {error}", path.display())))?;
        if state.content.is_none() && !state.damaged.is_empty() {
            return Err(Blocked::Stop(format!(
                "both copies of the manifest {} are damaged: nobody knows whether the object that was written last is \
                 in the store as a whole. Restore one of them; or look which position the newest object of this shard in \
                 the store ends with, and remove both",
                path.display()
            )));
        }
        let open = match state.content {
            None => Vec::new(),
            Some(content) => {
                let text = String::from_utf8(content).ok();
                text.and_then(|text| ObjectIntent::decode_all(&text, lane)).ok_or_else(|| {
                    Blocked::Stop(format!(
                        "the manifest {} is not of a kind that this version reads; use the version that wrote it",
                        path.display()
                    ))
                })?
            }
        };
        let damaged = state.damaged.iter().map(|path| format!("{} is damaged and was passed over", path.display()));
        Ok((Self { file, reserve: files.reserve.clone(), open }, damaged.collect()))
    }

    /// What was committed last, if there ever was anything.
    pub(crate) fn newest(&self) -> Option<&ObjectIntent> {
        self.open.last()
    }

    /// The name of the object that was committed last.
    pub(crate) fn newest_name(&self) -> Option<String> {
        Some(self.newest()?.objects.last()?.manifest.name.clone())
    }

    /// What was committed last, in its order: what stands before the first of it is written.
    pub(crate) fn open(&self) -> &[ObjectIntent] {
        &self.open
    }

    /// Makes it durable that the objects of these runs are on their way, and those before them written. On a full disk the reserve makes
    /// room: the objects may go elsewhere, and only behind them segments can be freed.
    pub(crate) fn save(&mut self, open: Vec<ObjectIntent>) -> io::Result<()> {
        let text: String = open.iter().map(ObjectIntent::encode).collect();
        self.reserve.help(|| self.file.write(text.as_bytes())).map(|()| self.open = open)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use event::Origin;
    use objects::{Codec, ObjectFormat, Portion, Prefix};

    use super::*;

    /// The text that versions wrote whose manifests were all beside their objects.
    #[test]
    fn an_object_of_an_older_version_has_its_manifest_beside_it() {
        let lane = Lane { origin: Origin([5; 16]), shard: 2, sink: "archive".into() };
        let text = "forebay-object 1\nrun 7 40\nreceived 5\ncodec none\nname a/b.ndjson\nprevious -\nline payload\nkeep a 0 -\n";
        let intents = ObjectIntent::decode_all(text, &lane).unwrap();
        let Manifest { description, period, .. } = &intents[0].objects[0].manifest;
        assert_eq!((&**description, *period), ("a/b.ndjson.manifest.json", None));
        assert_eq!(intents[0].encode(), text);
    }

    #[test]
    fn what_is_saved_is_loaded_and_nothing_else_is() {
        let lane = Lane { origin: Origin([5; 16]), shard: 2, sink: "archive".into() };
        let all = Passage { after: 0, until: u64::MAX, conditions: Vec::new(), gaps: Vec::new() };
        let conditions = vec![(7, Some("a ==  \n\"\\\\n\"".parse().unwrap())), (9, None)];
        let some = Passage { after: 7, until: 12, conditions, gaps: vec![(8, 9), (9, 11)] };
        let age_max = Duration::from_secs(1);
        let apart = |content_type: Option<&str>| {
            let folder = if content_type.is_some() { SideFolder::parts() } else { SideFolder::BESIDE };
            Some(AttachmentRule { data: "/an image/a".into(), content_type: content_type.map(Into::into), folder })
        };
        let by_day = "{day}/".parse::<Prefix>().unwrap().by_event_time();
        for (line, previous, apart, kept, (prefix, manifests)) in [
            (Line::Envelope, None, None, Kept::new(), (Prefix::NONE, SideFolder::BESIDE)),
            (Line::Payload, None, apart(None), Kept::new(), (Prefix::NONE, SideFolder::manifests())),
            (
                Line::Payload,
                Some("before".to_owned()),
                apart(Some("/type/ of")),
                Kept::from([("a".to_owned(), all), ("b.c".to_owned(), some)]),
                (by_day, SideFolder::manifests()),
            ),
        ] {
            let codec = Codec::Gzip;
            let rules = ObjectFormat { line, codec, bytes_max: 1, records_max: 1, age_max, prefix, apart, manifests };
            let object = |run, received_at| {
                let portion = Portion::received("a", received_at);
                let manifest = Manifest::new(lane.clone(), run, portion, &rules, previous.clone(), None);
                Object { manifest, kept: kept.clone() }
            };
            let objects = [object(7..=40, 1_760_000_000_000_000), object(7..=40, 5), object(41..=41, 6)];
            let intents = ObjectIntent::gather(objects.clone());
            assert_eq!(intents.iter().map(|run| run.objects.len()).collect::<Vec<_>>(), [2, 1]);
            assert_eq!((intents[0].received_at, intents[1].first), (5, 41));
            let all: String = intents.iter().map(ObjectIntent::encode).collect();
            assert_eq!(ObjectIntent::decode_all(&all, &lane), Some(intents));
            let [object, ..] = objects;
            let text = object.encode();
            assert_eq!(ObjectIntent::decode_all(&text, &lane), Some(vec![ObjectIntent::of(object)]));
            for (from, to) in
                [("object 1", "object 2"), ("run 7", "run -7"), ("codec gzip", "codec x"), ("name ", "nam ")]
            {
                assert_eq!(ObjectIntent::decode_all(&text.replacen(from, to, 1), &lane), None, "{to}");
            }
            assert_eq!(ObjectIntent::decode_all(&format!("{text}keep x 1\n"), &lane), None);
        }
    }
}
