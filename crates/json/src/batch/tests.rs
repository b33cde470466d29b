//! Bodies are split into the same records for any chunks.

use event::FURTHER_VALUES_FROM;
use limits::JSON_DEPTH_MAX;
use proptest::prelude::*;
use serde_json::value::RawValue;

use super::*;

/// A record's result: line, ordinal, and its text or the code and offset of its rejection.
type Outcome = (u32, u32, Result<String, (RejectionCode, Option<usize>)>);

fn split<'a>(form: Form, chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Outcome>, Result<(), BatchError>) {
    let mut outcomes = Vec::new();
    let mut sink = |item: Item<'_>| {
        let record = item.record.map(str::to_owned).map_err(|refusal| {
            assert_eq!(refusal.line, item.line);
            (refusal.code, refusal.offset)
        });
        outcomes.push((item.line, item.ordinal, record));
    };
    let mut splitter = Splitter::new(form);
    let ended = chunks.into_iter().try_for_each(|chunk| splitter.push(chunk, &mut sink));
    let ended = ended.and_then(|()| splitter.finish(&mut sink));
    (outcomes, ended)
}

fn whole(form: Form, body: &str) -> (Vec<Outcome>, Result<(), BatchError>) {
    split(form, [body.as_bytes()])
}

fn taken(line: u32, ordinal: u32, text: &str) -> Outcome {
    (line, ordinal, Ok(text.to_owned()))
}

#[test]
fn lines_are_numbered_as_an_editor_does() {
    let body = "\n{\"a\":1}\r\n \t\n 2 \nx\n\"end\"";
    let expected = vec![
        taken(2, 1, "{\"a\":1}"),
        taken(4, 2, "2"),
        (5, 3, Err((RejectionCode::Json, Some(0)))),
        taken(6, 4, "\"end\""),
    ];
    assert_eq!(whole(Form::Lines, body), (expected.clone(), Ok(())));
    assert_eq!(whole(Form::Detect, body), (expected, Ok(())));
}

#[test]
fn an_array_gives_its_elements() {
    let body = " \n[ {\"a\":[1]} , 2,\n\"x\" ]\n";
    let expected = vec![taken(1, 1, "{\"a\":[1]}"), taken(2, 2, "2"), taken(3, 3, "\"x\"")];
    assert_eq!(whole(Form::Array, body), (expected.clone(), Ok(())));
    assert_eq!(whole(Form::Detect, body), (expected, Ok(())));
    assert_eq!(whole(Form::Array, "[]"), (vec![], Ok(())));
}

#[test]
fn arrays_on_lines_are_lines() {
    let lines = vec![taken(2, 1, "[1,2]"), taken(3, 2, "[3]")];
    assert_eq!(whole(Form::Detect, "\n[1,2]\n[3]\n"), (lines.clone(), Ok(())));
    assert_eq!(whole(Form::Lines, "\n[1,2]\n[3]\n"), (lines, Ok(())));
    assert_eq!(whole(Form::Lines, "[1,2]"), (vec![taken(1, 1, "[1,2]")], Ok(())));
    for form in [Form::Array, Form::Detect] {
        assert_eq!(whole(form, "[1,2]\n[3]\n").0, [taken(1, 1, "[1,2]"), taken(2, 2, "[3]")]);
        assert!(
            matches!(whole(form, "[1,\n2").1, Err(BatchError::NotJson(_))),
            "an array goes over lines, and has no end"
        );
        assert!(matches!(whole(form, "[1,\n2}\n[3]").1, Err(BatchError::NotJson(_))));
        assert_eq!(whole(form, "{\"a\":1}{\"a\":2}\n3").0.len(), 3, "it isn't an array");
    }
    let broken = vec![(1, 1, Err((RejectionCode::Json, Some(3)))), taken(2, 2, "2")];
    assert_eq!(whole(Form::Detect, "[1,x]\n2"), (broken, Ok(())));
}

#[test]
fn fault_in_an_array_rejects_the_body() {
    for (body, offset, code) in [
        (" [1,\n x]", 6, RejectionCode::Json),
        ("[1,2", 4, RejectionCode::Json),
        ("[1,]", 3, RejectionCode::Json),
        ("[,1]", 1, RejectionCode::Json),
        ("[1,,2]", 3, RejectionCode::Json),
        ("[1 2]", 3, RejectionCode::Json),
        ("[{\"a\":[1}],2]", 8, RejectionCode::Json),
        ("[1}", 2, RejectionCode::Json),
        ("[{\"a\":", 6, RejectionCode::Json),
        ("[\"a, 2]", 7, RejectionCode::Json),
        ("[[1]", 4, RejectionCode::Json),
        ("[", 1, RejectionCode::Json),
        ("", 0, RejectionCode::Json),
        (" \n", 2, RejectionCode::Json),
    ] {
        let (_, ended) = whole(Form::Array, body);
        let error = ended.unwrap_err();
        assert_eq!(error.code(), code, "{body}");
        assert!(matches!(&error, BatchError::NotJson(json) if json.offset == offset), "{body}: {error}");
    }
    let (_, ended) = split(Form::Array, [b" [\"".as_slice(), b"\xff\"]"]);
    assert!(matches!(&ended, Err(BatchError::NotJson(json)) if json.offset == 3), "{ended:?}");
    assert_eq!(ended.unwrap_err().code(), RejectionCode::Utf8);
}

#[test]
fn limits_of_one_element_reject_that_element() {
    let deep = "[".repeat(JSON_DEPTH_MAX + 1) + &"]".repeat(JSON_DEPTH_MAX + 1);
    let allowed = "[".repeat(JSON_DEPTH_MAX) + &"]".repeat(JSON_DEPTH_MAX);
    let long = format!("\"{}\"", "x".repeat(EVENT_BYTES_MAX));
    let body = format!("[1,{deep},{allowed},\"\\ud800\",{long},2]");
    let expected = vec![
        taken(1, 1, "1"),
        (2, 2, Err((RejectionCode::Depth, Some(JSON_DEPTH_MAX)))),
        taken(3, 3, &allowed),
        (4, 4, Err((RejectionCode::Surrogate, Some(1)))),
        (5, 5, Err((RejectionCode::TooLarge, Some(EVENT_BYTES_MAX)))),
        taken(6, 6, "2"),
    ];
    assert_eq!(whole(Form::Array, &body), (expected, Ok(())));
}

#[test]
fn line_above_full_size_is_skipped() {
    let full = format!("\"{}\"", "x".repeat(EVENT_BYTES_MAX - 2));
    let long = full.replace("\"x", "\"xx");
    let body = format!("{full}\r\n{full} \n{long}{full}\r\n3");
    let expected = vec![
        taken(1, 1, &full),
        (2, 2, Err((RejectionCode::TooLarge, Some(EVENT_BYTES_MAX)))),
        (3, 3, Err((RejectionCode::TooLarge, Some(EVENT_BYTES_MAX)))),
        taken(4, 4, "3"),
    ];
    assert_eq!(whole(Form::Lines, &body), (expected.clone(), Ok(())));
    for size in [1_000, 65_536, EVENT_BYTES_MAX + 1] {
        assert_eq!(split(Form::Lines, body.as_bytes().chunks(size)), (expected.clone(), Ok(())), "{size}");
    }
    let mut lines = Lines::default();
    for _ in 0..64 {
        lines.push(&[b'x'; 65_536], &mut |_| {}).unwrap();
        assert!(lines.kept_bytes() <= 2 * EVENT_BYTES_MAX);
    }
}

#[test]
fn whole_lines_are_borrowed_from_their_chunk() {
    let chunk = b"{\"a\":1}\n{\"b\":2}\n".as_slice();
    let mut splitter = Splitter::new(Form::Lines);
    let mut borrowed = 0;
    let mut sink =
        |item: Item<'_>| borrowed += usize::from(chunk.as_ptr_range().contains(&item.record.unwrap().as_ptr()));
    splitter.push(chunk, &mut sink).unwrap();
    splitter.finish(&mut sink).unwrap();
    assert_eq!(borrowed, 2);
}

#[test]
fn a_batch_has_its_limits() {
    let most = "1\n\n".repeat(BATCH_RECORDS_MAX);
    let (given, ended) = whole(Form::Lines, &most);
    assert_eq!((given.len(), ended), (BATCH_RECORDS_MAX, Ok(())));
    assert_eq!(given.last().map(|item| (item.0, item.1)), Some((199_999, 100_000)));
    assert_eq!(whole(Form::Lines, &(most + "2")).1, Err(BatchError::TooManyRecords));
    let array = format!("[{}1]", "1,".repeat(BATCH_RECORDS_MAX - 1));
    assert_eq!(whole(Form::Array, &array).0.len(), BATCH_RECORDS_MAX);
    let more = array.replace(']', ",1]");
    assert_eq!(whole(Form::Array, &more).1, Err(BatchError::TooManyRecords));
    assert_eq!(whole(Form::Detect, &more).1, Err(BatchError::TooManyRecords));
    for form in [Form::Lines, Form::Array, Form::Detect] {
        let chunks = std::iter::repeat_n([b' '; 65_536].as_slice(), BATCH_BYTES_MAX / 65_536);
        assert_eq!(split(form, chunks.chain([b" ".as_slice()])).1, Err(BatchError::TooLarge), "{form:?}");
    }
}

#[test]
fn too_large_element_is_skipped_unless_faulty() {
    let long = |begin: &str, end: &str| format!("[1,{begin}{}{end},2]", "ü".repeat(EVENT_BYTES_MAX));
    let expected =
        vec![taken(1, 1, "1"), (2, 2, Err((RejectionCode::TooLarge, Some(EVENT_BYTES_MAX)))), taken(3, 3, "2")];
    for (begin, end) in [("\"", "\""), ("{\"a\":[\"", "\"]}"), ("[\"\\\"", "\"]")] {
        let body = long(begin, end);
        for size in [1_000, 65_536, EVENT_BYTES_MAX + 1, body.len()] {
            let chunks = body.as_bytes().chunks(size);
            assert_eq!(split(Form::Array, chunks), (expected.clone(), Ok(())), "{begin} in pieces of {size}");
        }
    }
    for size in [1_000, 3 * EVENT_BYTES_MAX] {
        let (_, ended) = split(Form::Array, long("[x", "]").as_bytes().chunks(size));
        assert!(matches!(&ended, Err(BatchError::NotJson(error)) if error.offset == 4), "{ended:?}");
    }
    let brackets = [b'['; 65_536];
    let mut array = Array::new(0);
    for _ in 0..64 {
        array.push(&brackets, &mut |_| {}).unwrap();
        assert!(array.kept_bytes() <= 2 * EVENT_BYTES_MAX);
    }
    assert!(array.finish().is_err());
}

#[test]
fn mebibyte_that_could_be_an_array_is_one() {
    let values = format!("[{}", "[1,2],".repeat(EVENT_BYTES_MAX / 12));
    let lines = values.clone() + "\n3\n";
    assert!(matches!(whole(Form::Detect, &lines).1, Err(BatchError::NotJson(_))), "it isn't closed on its line");
    let array = format!("{}{values}3]", "\n".repeat(EVENT_BYTES_MAX));
    assert_eq!(whole(Form::Detect, &array).0.last(), Some(&taken(87_382, 87_382, "3")));
    let long = format!("[\"{}\",1]", "x".repeat(EVENT_BYTES_MAX));
    let expected = vec![(1, 1, Err((RejectionCode::TooLarge, Some(EVENT_BYTES_MAX)))), taken(2, 2, "1")];
    assert_eq!(whole(Form::Detect, &long), (expected, Ok(())));
    assert!(matches!(whole(Form::Detect, &(long + "\n3")).1, Err(BatchError::NotJson(_))));
}

fn further(line: u32, number: u32, text: &str) -> Outcome {
    taken(line, FURTHER_VALUES_FROM + number, text)
}

#[test]
fn a_line_holds_several_values() {
    let body = "{\"a\":1}{\"a\":2} [3]\n\n4 \"five\"null\r\n6\n";
    let expected = vec![
        taken(1, 1, "{\"a\":1}"),
        further(1, 0, "{\"a\":2}"),
        further(1, 1, "[3]"),
        taken(3, 2, "4"),
        further(3, 2, "\"five\""),
        further(3, 3, "null"),
        taken(4, 3, "6"),
    ];
    for form in [Form::Lines, Form::Detect, Form::Array] {
        assert_eq!(whole(form, body), (expected.clone(), Ok(())));
    }
}

#[test]
fn faulty_line_of_several_values_is_one_rejection() {
    let bad = |offset| (1, 1, Err((RejectionCode::Json, Some(offset))));
    for (line, offset) in [("{\"a\":1}{\"a\":}", 12), ("1 2 x", 4), ("1,2", 1), ("10:30", 2), ("{} {", 4)] {
        let expected = vec![bad(offset), taken(2, 2, "{\"b\":2}")];
        assert_eq!(whole(Form::Lines, &format!("{line}\n{{\"b\":2}}")), (expected, Ok(())), "{line}");
    }
    let deep = "[".repeat(JSON_DEPTH_MAX + 1) + &"]".repeat(JSON_DEPTH_MAX + 1);
    let limit = (1, FURTHER_VALUES_FROM, Err((RejectionCode::Depth, Some(2 + JSON_DEPTH_MAX))));
    let expected = vec![taken(1, 1, "1"), limit, further(1, 1, "2")];
    assert_eq!(
        whole(Form::Lines, &format!("1 {deep} 2")),
        (expected, Ok(())),
        "a limit of one value refuses that value"
    );
}

#[test]
fn line_of_several_values_may_exceed_a_record() {
    let value = format!("{{\"a\":\"{}\"}}", "x".repeat(1000));
    let line = value.repeat(2 * EVENT_BYTES_MAX / value.len());
    let body = format!("{line}\n1\n");
    let at_once = whole(Form::Lines, &body);
    assert_eq!((at_once.0.len(), &at_once.1), (2 * EVENT_BYTES_MAX / value.len() + 1, &Ok(())));
    for size in [1_000, 65_536, EVENT_BYTES_MAX + 1] {
        assert_eq!(split(Form::Lines, body.as_bytes().chunks(size)), at_once, "{size}");
    }
    assert_eq!(whole(Form::Lines, &"1 ".repeat(BATCH_RECORDS_MAX + 1)).1, Err(BatchError::TooManyRecords));
}

fn refusals(body: &str) -> Vec<(u32, bool)> {
    let mut found = Vec::new();
    let mut sink = |item: Item<'_>| match item.record {
        Ok(text) => found.push((item.line, text.is_empty())),
        Err(refusal) => {
            found.push((item.line, true));
            assert!(refusal.detail.ends_with(super::span::OVER_LINES), "{body}: {}", refusal.detail);
        }
    };
    let mut splitter = Splitter::new(Form::Lines);
    splitter.push(body.as_bytes(), &mut sink).unwrap();
    splitter.finish(&mut sink).unwrap();
    found
}

/// No part of a value over lines is accepted, but the lines before and after it are.
#[test]
fn a_value_over_lines_is_one_refusal() {
    let pretty = "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": \"y\"\n}";
    let faulty = pretty.replace("1,", "NaN,");
    let cut = pretty.trim_end_matches('}');
    for (body, expected) in [
        (pretty.to_owned(), vec![(1, true)]),
        (format!("{pretty}\n{pretty}\n"), vec![(1, true), (8, true)]),
        (format!("{pretty}{pretty}\n"), vec![(1, true), (7, true)]),
        (format!("1\n\n{pretty}\n2\n"), vec![(1, false), (3, true), (10, false)]),
        (cut.to_owned(), vec![(1, true)]),
        (faulty.clone(), vec![(1, true)]),
        (format!("{faulty}\n3\n"), vec![(1, true), (8, false)]),
        ("[\n  NaN,\n  1,\n  2\n]\n{\"a\":1}".to_owned(), vec![(1, true), (6, false)]),
        ("[\n1,\n2\n]".to_owned(), vec![(1, true)]),
        (pretty.replace('\n', "\r\n"), vec![(1, true)]),
    ] {
        assert_eq!(refusals(&body), expected, "{body}");
    }
    for (text, expected) in [
        (pretty, true),
        (&faulty, true),
        (&pretty[..20], true),
        ("\u{feff}\n{\n\"a\":1", true),
        ("{\"a\":[1,", false),
        ("{\"a\":\n{\"b\":1}\n{\"c\":1}\n", false),
        ("{\"a\":1}\n{\n", false),
        ("", false),
    ] {
        assert_eq!(begins_over_lines(text.as_bytes()), expected, "{text}");
    }
    let long = format!("{{\n  \"a\": [\n{}    2\n  ]\n}}\n3\n", "    1,\n".repeat(EVENT_BYTES_MAX / 5));
    assert_eq!(refusals(&long).len(), 2);
    assert_eq!(refusals(&long)[0], (1, true));
}

#[test]
fn truncated_line_is_one_rejection() {
    for (cut, after) in [
        ("{\"a\":", "{\"b\":1}\n{\"c\":2}"),
        ("{\"a\":[1,", "{\"b\":1}\n{\"c\":2}\n{\"d\":3}"),
        ("{\"a\":1,", "{\"b\":1}\n\n{\"c\":2}"),
        ("{\"a\":1", "{\"b\":1}"),
        ("{\"a\":\"x", "\"y\"\n2"),
        ("tru", "2\n3"),
        ("1e", "2"),
        ("{", "{\"b\":1}"),
    ] {
        let (found, ended) = whole(Form::Lines, &format!("0\n{cut}\n{after}\n"));
        let lines: Vec<_> = after.lines().filter(|line| !line.is_empty()).collect();
        let texts: Vec<_> = found.iter().filter_map(|(.., record)| record.clone().ok()).collect();
        assert_eq!(
            (texts[1..].to_vec(), found.len(), ended),
            (lines.iter().map(|line| (*line).to_owned()).collect(), lines.len() + 2, Ok(())),
            "{cut}"
        );
        assert!(found[1].2.is_err() && found[1].0 == 2);
    }
}

#[test]
fn byte_order_mark_is_skipped() {
    for form in [Form::Lines, Form::Detect, Form::Array] {
        assert_eq!(whole(form, "\u{feff}{\"a\":1}\n2"), (vec![taken(1, 1, "{\"a\":1}"), taken(2, 2, "2")], Ok(())));
        assert_eq!(whole(form, "1\n\u{feff}2\n"), (vec![taken(1, 1, "1"), taken(2, 2, "2")], Ok(())), "files in a row");
        assert_eq!(whole(form, "\u{feff}1"), (vec![taken(1, 1, "1")], Ok(())));
    }
    assert_eq!(whole(Form::Detect, "\u{feff}[1,2]"), (vec![taken(1, 1, "1"), taken(2, 2, "2")], Ok(())));
    let (_, ended) = whole(Form::Array, "\u{feff}[1,");
    assert!(matches!(&ended, Err(BatchError::NotJson(error)) if error.offset == 6), "{ended:?}");
}

#[test]
fn body_in_another_format_is_rejected() {
    let utf_16: Vec<u8> = "{\"a\":1}\n2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let multipart = b"--X\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n{\"a\":1}\n2\n\r\n--X--\r\n";
    for (body, named) in
        [(b"\x1f\x8b\x08\0\n1\n2\n".as_slice(), "gzip"), (&utf_16, "UTF-16"), (multipart.as_slice(), "multipart")]
    {
        for form in [Form::Lines, Form::Detect, Form::Array] {
            for size in [1, 3, 100] {
                let (given, ended) = split(form, body.chunks(size));
                assert!(given.is_empty(), "{named}");
                assert!(
                    matches!(&ended, Err(BatchError::OtherFormat(error)) if error.detail.contains(named)),
                    "{ended:?}"
                );
            }
        }
    }
    assert_eq!(whole(Form::Lines, "--\n1\n").0.len(), 2, "a bad line");
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let record = prop_oneof![
        6 => crate::testing::json_text().prop_map(String::into_bytes),
        1 => "[\\[\\]{}\", \r]{0,8}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ];
    let separator = prop::sample::select(vec!["\n", "\r\n", "\n\n", ",", " "]);
    let wrapped = prop::sample::select(vec![("", ""), ("[", "]"), ("\n [", "] "), ("[", "")]);
    (prop::collection::vec(record, 0..8), separator, wrapped).prop_map(|(records, separator, (open, close))| {
        [open.as_bytes(), &records.join(separator.as_bytes()), close.as_bytes()].concat()
    })
}

proptest! {
    #[test]
    fn chunks_change_nothing(body in body(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        for form in [Form::Lines, Form::Array, Form::Detect] {
            let at_once = split(form, [body.as_slice()]);
            prop_assert_eq!(&split(form, cuts.windows(2).map(|cut| &body[cut[0]..cut[1]])), &at_once);
            prop_assert_eq!(&split(form, body.chunks(1)), &at_once);
        }
    }

    #[test]
    fn arrays_equal_those_of_a_full_reader(body in body()) {
        let body = if crate::first_byte(&body).is_some_and(|first| body[first] == b'[') { body } else { [b"[", body.as_slice()].concat() };
        let whole = serde_json::from_slice::<Vec<&RawValue>>(&body).ok().map(|elements| {
            elements.into_iter().map(|element| crate::check(element.get().as_bytes()).ok().map(str::to_owned)).collect()
        });
        let (given, ended) = split(Form::Array, [body.as_slice()]);
        if whole.is_none() && ended.is_ok() {
            // An array on a separate line, followed by other text: lines.
            return Ok(());
        }
        let given: Option<Vec<_>> = ended.ok().map(|()| given.into_iter().map(|(.., record)| record.ok()).collect());
        prop_assert_eq!(given, whole);
    }

    #[test]
    fn lines_agree_with_a_plain_split(body in body()) {
        // Lines that end within a value, and lines of several values, are beyond a plain split.
        let is_plain = |line: &&[u8]| !crate::check(line).is_err_and(|error| error.is_open() || error.is_trailing());
        let body = body.split(|byte| *byte == b'\n').filter(is_plain).collect::<Vec<_>>().join(&b'\n');
        let plain: Vec<_> = (1_u32..)
            .zip(body.split(|byte| *byte == b'\n'))
            .filter(|(_, line)| !line.iter().all(|byte| b" \t\r".contains(byte)))
            .map(|(number, line)| (number, crate::check(line.strip_suffix(b"\r").unwrap_or(line)).ok().map(str::to_owned)))
            .collect();
        let (given, ended) = split(Form::Lines, [body.as_slice()]);
        prop_assert_eq!(ended, Ok(()));
        let given: Vec<_> = given.into_iter().map(|(line, _, record)| (line, record.ok())).collect();
        prop_assert_eq!(given, plain);
    }
}
