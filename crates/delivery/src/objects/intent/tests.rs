//! Intents are loaded with the content that this version or version 1 saved.

use event::Origin;
use objects::{AttachmentRule, Codec, Line, SideFolder};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::objects::version1;

/// What the encoder of version 1 wrote.
const VERSION1: &str = r#"forebay-object 1
run 7 40
received 1760000000000000
codec gzip
name 2025-10-09/archive-20251009T085320Z-05050505050505050505050505050505-0002-00000000000000000007.ndjson.gz
previous before
line payload
apart /an image/a
apart-type /type/ of
apart-folder _parts
description _manifests/2025-10-09/archive-20251009T085320Z-05050505050505050505050505050505-0002-00000000000000000007.ndjson.gz.manifest.json
period day 20370
keep a 0 -
keep b.c 7 12
gap b.c 8 9
gap b.c 9 11
when b.c 7 a ==  \n"\\\\n"
when b.c 9 -
forebay-object 1
run 7 40
received 5
codec gzip
name 1970-01-01/archive-19700101T000000Z-05050505050505050505050505050505-0002-00000000000000000007.ndjson.gz
previous before
line payload
apart /an image/a
apart-type /type/ of
apart-folder _parts
description _manifests/1970-01-01/archive-19700101T000000Z-05050505050505050505050505050505-0002-00000000000000000007.ndjson.gz.manifest.json
period day 0
keep a 0 -
keep b.c 7 12
gap b.c 8 9
gap b.c 9 11
when b.c 7 a ==  \n"\\\\n"
when b.c 9 -
forebay-object 1
run 41 41
received 6
codec gzip
name 1970-01-01/archive-19700101T000000Z-05050505050505050505050505050505-0002-00000000000000000041.ndjson.gz
previous before
line payload
apart /an image/a
apart-type /type/ of
apart-folder _parts
description _manifests/1970-01-01/archive-19700101T000000Z-05050505050505050505050505050505-0002-00000000000000000041.ndjson.gz.manifest.json
period day 0
keep a 0 -
keep b.c 7 12
gap b.c 8 9
gap b.c 9 11
when b.c 7 a ==  \n"\\\\n"
when b.c 9 -
"#;

fn lane() -> Lane {
    Lane { origin: Origin([5; 16]), shard: 2, sink: "archive".into() }
}

/// The objects of [`VERSION1`].
fn objects_of_version1() -> Vec<Object> {
    let all = Passage { after: 0, until: u64::MAX, conditions: Vec::new(), gaps: Vec::new() };
    let conditions = vec![(7, Some("a ==  \n\"\\\\n\"".parse().unwrap())), (9, None)];
    let some = Passage { after: 7, until: 12, conditions, gaps: vec![(8, 9), (9, 11)] };
    let kept = Kept::from([("a".to_owned(), all), ("b.c".to_owned(), some)]);
    let object = |first, last, received_at, name: &str, period: &str| {
        let name = name.replace('@', "-05050505050505050505050505050505-0002-000000000000000000") + ".ndjson.gz";
        let manifest = Manifest {
            lane: lane(),
            first,
            last,
            received_at,
            line: Line::Payload,
            codec: Codec::Gzip,
            apart: Some(AttachmentRule {
                data: "/an image/a".into(),
                content_type: Some("/type/ of".into()),
                folder: SideFolder::parts(),
            }),
            previous: Some("before".into()),
            description: SideFolder::manifests().manifest_of(&name),
            name,
            period: Some(period.parse().unwrap()),
        };
        Object { manifest, kept: kept.clone() }
    };
    vec![
        object(7, 40, 1_760_000_000_000_000, "2025-10-09/archive-20251009T085320Z@07", "day 20370"),
        object(7, 40, 5, "1970-01-01/archive-19700101T000000Z@07", "day 0"),
        object(41, 41, 6, "1970-01-01/archive-19700101T000000Z@41", "day 0"),
    ]
}

#[test]
fn objects_of_version_1_are_loaded() {
    let objects = objects_of_version1();
    assert_eq!(version1::decode(VERSION1.as_bytes(), &lane()), Ok(objects));
    assert!(version1::is_version1(VERSION1.as_bytes()) && version1::is_version1(b""));
    assert_eq!(version1::decode(b"", &lane()), Ok(Vec::new()));
    for (from, to, line) in [
        ("run 7", "run -7", 2),
        ("codec gzip", "codec x", 4),
        ("name ", "nam ", 5),
        ("gap b.c", "gap c", 15),
        ("period d", "period x", 12),
    ] {
        let text = VERSION1.replacen(from, to, 1);
        assert_eq!(version1::decode(text.as_bytes(), &lane()).unwrap_err().line, line, "{to}");
    }
}

#[test]
fn optional_facts_of_version_1_have_defaults() {
    let text = "forebay-object 1\nrun 7 40\nreceived 5\ncodec none\nname a/b.ndjson\nprevious -\nkeep a 0 -\n";
    let objects = version1::decode(text.as_bytes(), &lane()).unwrap();
    let Manifest { description, period, line, apart, previous, .. } = &objects[0].manifest;
    assert_eq!(description, "a/b.ndjson.manifest.json");
    assert_eq!((*period, *line, apart, previous), (None, Line::Envelope, &None, &None));
}

#[test]
fn saved_object_has_this_line() {
    let [first, ..] = &ObjectIntent::gather(objects_of_version1())[..] else { unreachable!() };
    let text = String::from_utf8(encode(std::slice::from_ref(first)).unwrap()).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(r#"{"format":"forebay-object","version":2}"#));
    let line = lines.next().unwrap();
    for part in [
        r#"{"object":{"lane":{"origin":"05050505050505050505050505050505","shard":2,"sink":"archive"},"first":7,"last":40,"#,
        r#""line":"payload","codec":"gzip","#,
        r#""attachments":{"data":"/an image/a","content_type":"/type/ of","folder":"_parts"},"previous":"before","#,
        r#""manifest":"_manifests/2025-10-09/archive-"#,
        r#""period":"day 20370"},"kept":{"a":{"after":0,"until":18446744073709551615,"conditions":[],"gaps":[]},"b.c":"#,
    ] {
        assert!(line.contains(part), "{line}");
    }
    assert_eq!(lines.count(), 1);
    let other = text.replace("\"kept\"", "\"novel\"");
    assert_eq!(decode(other.as_bytes(), &lane()).unwrap_err().line, 2);
}

#[test]
fn objects_of_a_run_are_gathered() {
    let intents = ObjectIntent::gather(objects_of_version1());
    assert_eq!(intents.iter().map(|run| run.objects.len()).collect::<Vec<_>>(), [2, 1]);
    assert_eq!((intents[0].received_at, intents[1].first), (5, 41));
}

fn passage() -> impl Strategy<Value = Passage> {
    let condition = select(vec!["a", "b ==  \n\"\\\\n\"", "c // é"]).prop_map(|text| text.parse().unwrap());
    let conditions = vec((any::<u64>(), option::of(condition)), 0..3);
    (any::<[u64; 2]>(), conditions, vec(any::<(u64, u64)>(), 0..3))
        .prop_map(|([after, until], conditions, gaps)| Passage { after, until, conditions, gaps })
}

fn manifest() -> impl Strategy<Value = Manifest> {
    let texts = || select(vec!["a/b", "", "é \"\n"]).prop_map(str::to_owned);
    let rule = (texts(), option::of(texts()), select(vec!["", "_parts"]));
    let rule = rule.prop_map(|(data, content_type, folder)| AttachmentRule {
        data: data.into(),
        content_type: content_type.map(Into::into),
        folder: folder.parse().unwrap(),
    });
    let codec = (select(Codec::ALL.to_vec()), select(vec![Line::Payload, Line::Envelope]));
    let period =
        option::of(select(vec!["day -3", "hour 20370", "hour-of-day 9"]).prop_map(|text| text.parse().unwrap()));
    let names = (texts(), texts(), option::of(texts()));
    (any::<[u64; 2]>(), any::<i64>(), codec, option::of(rule), names, period).prop_map(
        |([first, last], received_at, (codec, line), apart, (name, description, previous), period)| Manifest {
            lane: lane(),
            first,
            last,
            received_at,
            line,
            codec,
            apart,
            previous,
            name,
            description,
            period,
        },
    )
}

proptest! {
    #[test]
    fn saved_objects_are_loaded(
        objects in vec((manifest(), btree_map("[a-z]{1,3}", passage(), 0..3)), 0..4)
    ) {
        let objects: Vec<Object> = objects.into_iter().map(|(manifest, kept)| Object { manifest, kept }).collect();
        let text = encode(&ObjectIntent::gather(objects.clone())).unwrap();
        prop_assert_eq!(decode(&text, &lane()), Ok(objects.clone()));
        let other = Lane { shard: 3, ..lane() };
        prop_assert!(decode(&text, &other).unwrap().iter().all(|object| object.manifest.lane == other));
    }
}
