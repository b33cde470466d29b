//! Bodies are cut into the same records however they arrive.

use event::limits::JSON_DEPTH_MAX;
use proptest::prelude::*;
use serde_json::value::RawValue;

use super::*;

/// What a record became: line, ordinal, and its text or the code and offset of its refusal.
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
fn lines_that_are_arrays_are_lines_unless_the_body_is_one() {
    let lines = vec![taken(2, 1, "[1,2]"), taken(3, 2, "[3]")];
    assert_eq!(whole(Form::Detect, "\n[1,2]\n[3]\n"), (lines.clone(), Ok(())));
    assert_eq!(whole(Form::Lines, "\n[1,2]\n[3]\n"), (lines, Ok(())));
    assert_eq!(whole(Form::Lines, "[1,2]"), (vec![taken(1, 1, "[1,2]")], Ok(())));
    let broken = vec![(1, 1, Err((RejectionCode::Json, Some(3)))), taken(2, 2, "2")];
    assert_eq!(whole(Form::Detect, "[1,\n2"), (broken, Ok(())));
}

#[test]
fn a_fault_in_an_array_refuses_the_body() {
    for (body, offset, code) in [
        (" [1,\n x]", 6, RejectionCode::Json),
        ("[1,2", 4, RejectionCode::Json),
        ("[1]2", 3, RejectionCode::Json),
        ("[1,]", 3, RejectionCode::Json),
        ("[,1]", 1, RejectionCode::Json),
        ("[1,,2]", 3, RejectionCode::Json),
        ("[1 2]", 3, RejectionCode::Json),
        ("[{\"a\":[1}],2]", 8, RejectionCode::Json),
        ("[1}", 2, RejectionCode::Json),
        ("[{\"a\":", 6, RejectionCode::Json),
        ("[\"a, 2]", 7, RejectionCode::Json),
        ("[[1]", 4, RejectionCode::Json),
        ("[]]", 2, RejectionCode::Json),
        ("[", 1, RejectionCode::Json),
        ("\n{\"a\":1}", 1, RejectionCode::Json),
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
fn limits_of_one_element_refuse_that_element() {
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
fn a_line_of_full_size_passes_and_a_longer_one_is_passed_over_unkept() {
    let full = format!("\"{}\"", "x".repeat(EVENT_BYTES_MAX - 2));
    let body = format!("{full}\r\n{full} \n{full}{full}\r\n3");
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
fn an_element_that_is_too_large_is_passed_over_unkept_unless_it_begins_with_a_fault() {
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
fn a_mebibyte_that_could_be_an_array_is_one() {
    let values = format!("[{}", "[1,2],".repeat(EVENT_BYTES_MAX / 12));
    let lines = values.clone() + "\n3\n";
    assert_eq!(whole(Form::Detect, &lines).0.len(), 2, "it ends before");
    let array = format!("{}{values}3]", "\n".repeat(EVENT_BYTES_MAX));
    assert_eq!(whole(Form::Detect, &array).0.last(), Some(&taken(87_382, 87_382, "3")));
    let long = format!("[\"{}\",1]", "x".repeat(EVENT_BYTES_MAX));
    let expected = vec![(1, 1, Err((RejectionCode::TooLarge, Some(EVENT_BYTES_MAX)))), taken(2, 2, "1")];
    assert_eq!(whole(Form::Detect, &long), (expected, Ok(())));
    assert!(matches!(whole(Form::Detect, &(long + "\n3")).1, Err(BatchError::NotJson(_))));
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
    fn arrays_agree_with_a_reader_of_all_of_it(body in body()) {
        let whole = serde_json::from_slice::<Vec<&RawValue>>(&body).ok().map(|elements| {
            elements.into_iter().map(|element| crate::check(element.get().as_bytes()).ok().map(str::to_owned)).collect()
        });
        let (given, ended) = split(Form::Array, [body.as_slice()]);
        let given: Option<Vec<_>> = ended.ok().map(|()| given.into_iter().map(|(.., record)| record.ok()).collect());
        prop_assert_eq!(given, whole);
    }

    #[test]
    fn lines_agree_with_a_plain_split(body in body()) {
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
