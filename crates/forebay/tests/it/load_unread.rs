//! `forebay load` of what it can't read: a bad line is refused as one line, and what follows is loaded.

use std::fs;

use crate::load::{counts, finish, load};
use crate::support::{Folder, Server, payloads};

/// More than is held of one line.
const TOO_LONG: usize = 12_000_000;

#[test]
fn a_line_that_cannot_be_read_is_refused_alone_and_nothing_comes_twice() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let url = server.url();
    let long = "x".repeat(TOO_LONG);
    let text = |text: String| text.into_bytes();
    let cases: [(&str, Vec<u8>, u64, u64); 8] = [
        ("lines", text(format!("1\n{{\"dump\":\"{long}\"}}\n2\n")), 2, 1),
        ("array", text(format!("[1,{{\"dump\":\"{long}\"}},2]")), 2, 1),
        ("last", text(format!("1\n2\n\"{long}")), 2, 1),
        ("nuls", [b"1\n", &[0; 9000][..], b"\n2\n"].concat(), 2, 1),
        ("utf8", b"1\n\"\xff\"\n2\n".to_vec(), 2, 1),
        ("json", b"1\r\n{]\r\n\r\n2".to_vec(), 2, 1),
        ("many", text(format!("{long}\n1\n{long}\n{long}\n2")), 2, 3),
        ("element", b"[1,{]},2]".to_vec(), 2, 1),
    ];
    let mut stored = 0;
    for (name, content, good, bad) in cases {
        let file = folder.write(name, content);
        let refused = folder.text(&format!("{name}.refused"));
        let arguments = [&*file, "--url", &url, "--type", name, "--refused", &refused];
        let (code, text) = finish(load(&arguments));
        assert_eq!((code, counts(&text, "accepted"), counts(&text, "refused")), (3, good, bad), "{name}: {text}");
        assert!(text.contains("was refused ("), "{name}: {text}");
        assert_eq!(fs::read_to_string(&refused).unwrap().lines().count() as u64, bad, "{name}");
        let (code, text) = finish(load(&arguments));
        assert_eq!((code, counts(&text, "sent")), (3, 0), "{name}: {text}");
        stored += good;
    }
    server.wait_delivered();
    assert_eq!(payloads(&folder.data()).len() as u64, stored);
}

#[test]
fn what_stands_before_a_cut_is_loaded_and_the_rest_when_it_is_there() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let url = server.url();
    for (name, cut, whole) in [("cut", "[1,2,3", "[1,2,34]"), ("bracket", "[1,2,34,", "[1,2,34,5]")] {
        let file = folder.write(name, cut);
        let arguments = [&*file, "--url", &url, "--type", name];
        for _ in 0..2 {
            let (code, text) = finish(load(&arguments));
            assert!(code == 1 && text.contains("ends within a JSON array"), "{name}: {text}");
        }
        let series = format!("forebay_events_accepted_total{{type=\"{name}\"}}");
        let before = cut.matches(',').count() as u64;
        assert_eq!(server.metric(&series), before, "{name}");
        folder.write(name, whole);
        let (code, text) = finish(load(&arguments));
        assert_eq!((code, server.metric(&series)), (0, before + 1), "{name}: {text}");
    }
}

#[test]
fn a_file_that_has_lost_its_end_is_not_loaded_again() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let url = server.url();
    let file = folder.write("a", "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n");
    let arguments = [&*file, "--url", &url];
    assert_eq!(finish(load(&arguments)).0, 0);
    let cut = fs::OpenOptions::new().write(true).open(folder.path("a")).unwrap();
    cut.set_len(8).unwrap();
    let (code, text) = finish(load(&arguments));
    assert!(code == 1 && text.contains("it was cut"), "{text}");
    assert_eq!(server.metric("forebay_events_accepted_total"), 3);
    // Another content under the name is another file.
    fs::write(folder.path("a"), "[4]\n").unwrap();
    assert_eq!(finish(load(&arguments)).0, 0);
    assert_eq!(server.metric("forebay_events_accepted_total"), 4);
}
