//! Every record of a seed is the same each time, of a realistic size, and JSON.

use std::collections::HashSet;

use super::*;

fn lines(generator: &mut Generator, count: usize) -> Vec<String> {
    let mut line = Vec::new();
    let mut next = || {
        line.clear();
        generator.next_line(&mut line);
        let text = String::from_utf8(line.clone()).unwrap();
        text.strip_suffix('\n').unwrap().to_owned()
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn every_record_is_json_on_one_line() {
    for kind in RecordKind::ALL {
        for number in [0, u64::from(u32::MAX), u64::MAX / 16] {
            for line in lines(&mut Generator::starting_at(kind, 7, number), 500) {
                assert_eq!(json::check(line.as_bytes()), Ok(line.as_str()), "{kind:?}");
                assert!(line.starts_with('{') && !line.contains(['\n', '\r']), "{kind:?} {line}");
            }
        }
    }
}

#[test]
fn record_depends_on_kind_seed_and_number() {
    for kind in RecordKind::ALL {
        let records = lines(&mut Generator::new(kind, 1), 100);
        assert_eq!(lines(&mut Generator::new(kind, 1), 100), records);
        assert_eq!(lines(&mut Generator::starting_at(kind, 1, 60), 40), records[60..]);
        assert_ne!(lines(&mut Generator::new(kind, 2), 100), records);
    }
}

#[test]
fn known_records_do_not_change() {
    // A changed record would change the results of a benchmark and the expectations of a saved run.
    let mut generator = Generator::starting_at(RecordKind::JobStatus, 42, 3);
    assert_eq!(lines(&mut generator, 1), [KNOWN_JOB]);
    let mut generator = Generator::starting_at(RecordKind::Access, 42, 20 * 86_400 * 59);
    assert_eq!(lines(&mut generator, 1), [KNOWN_ACCESS]);
}

const KNOWN_JOB: &str = r#"{"data":"{'job_id':'08f5dc87e5e9','container_id':'6a344796755f','status':'Success: process exited with code 0.'}"}"#;
const KNOWN_ACCESS: &str = r#"{"type":"access","time":"2026-03-01T00:00:00+00:00","client":"203.0.113.170","method":"GET","path":"/articles/measuring-a-river/?visit=101952000","protocol":"HTTP/1.1","status":301,"bytes":272716,"referrer":null,"agent":"Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"}"#;

#[test]
fn no_two_records_of_a_seed_are_alike() {
    for kind in RecordKind::ALL {
        let records = lines(&mut Generator::new(kind, 3), 20_000);
        assert_eq!(records.iter().collect::<HashSet<_>>().len(), records.len(), "{kind:?}");
    }
}

#[test]
fn records_have_the_sizes_of_real_ones() {
    for (kind, each, average) in [
        (RecordKind::Access, 180..500, 325..345),
        (RecordKind::JobStatus, 114..115, 114..115),
        (RecordKind::Nested, 4_000..6_000, 4_800..5_200),
        (RecordKind::Multilingual, 1_000..4_096, 2_000..2_600),
    ] {
        let sizes: Vec<_> = lines(&mut Generator::new(kind, 4), 5_000).iter().map(String::len).collect();
        let (least, most) = (sizes.iter().min(), sizes.iter().max());
        assert!(sizes.iter().all(|size| each.contains(size)), "{kind:?}: {least:?} to {most:?}");
        let mean = sizes.iter().sum::<usize>() / sizes.len();
        assert!(average.contains(&mean), "{kind:?}: {mean}");
    }
}
