//! `forebay load` of damaged input: a bad line is rejected as one line, and the lines after it are loaded.

use std::fs;
use std::io::Write;

use crate::load::{counts, finish, load};
use crate::support::{Folder, Server, payloads};

/// More than the loader buffers of one line.
const TOO_LONG: usize = 12_000_000;

#[test]
fn unreadable_line_is_rejected_alone() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let url = server.url();
    let long = "x".repeat(TOO_LONG);
    let text = |text: String| text.into_bytes();
    let cases: [(&str, Vec<u8>, u64, u64); 8] = [
        ("lines", text(format!("1\n{{\"dump\":\"{long}\"}}\n2\n")), 2, 1),
        ("array", text(format!("[1,{{\"dump\":\"{long}\"}},2]")), 2, 1),
        ("last", text(format!("1\n2\n\"{long}")), 2, 1),
        ("nuls", [b"1\n3", &[0; 9000][..], b"\n2\n"].concat(), 2, 1),
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
        assert_eq!((code, counts(&text, "accepted"), counts(&text, "rejected")), (3, good, bad), "{name}: {text}");
        assert!(text.contains("was rejected ("), "{name}: {text}");
        assert_eq!(fs::read_to_string(&refused).unwrap().lines().count() as u64, bad, "{name}");
        let (code, text) = finish(load(&arguments));
        assert_eq!((code, counts(&text, "sent")), (3, 0), "{name}: {text}");
        stored += good;
    }
    server.wait_delivered();
    assert_eq!(payloads(&folder.data()).len() as u64, stored);
}

#[test]
fn truncated_file_loads_its_intact_lines() {
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
fn lines_before_compressed_damage_are_loaded() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let url = server.url();
    let gzip = gzip("1\n2\n3\n");
    let zstd = zstd::encode_all(&b"1\n2\n3\n"[..], 1).unwrap();
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4];
    let cut = |packed: &[u8], bytes| packed[..packed.len() - bytes].to_vec();
    for (name, content, code, lines) in [
        ("pzstd", [&skippable[..], &zstd].concat(), 0, 3),
        ("gzip-zeros", [&gzip[..], &[0; 10_240]].concat(), 0, 3),
        ("zstd-zeros", [&zstd[..], &[0; 512]].concat(), 0, 3),
        ("gzip-junk", [&gzip[..], b"junk"].concat(), 1, 3),
        ("zstd-junk", [&zstd[..], b"junk"].concat(), 1, 3),
        ("gzip-cut", cut(&gzip, 8), 1, 3),
        ("nul-bytes", [&[0; 9000][..], b"1\n", &[0; 9000], b"2\n"].concat(), 0, 2),
    ] {
        let file = folder.write(name, content);
        for _ in 0..2 {
            let (exit, text) = finish(load(&[&*file, "--url", &url, "--type", name]));
            assert_eq!(exit, code, "{name}: {text}");
        }
        assert_eq!(server.metric(&format!("forebay_events_accepted_total{{type=\"{name}\"}}")), lines, "{name}");
    }
    let file = folder.write("xz", b"\xfd7zXZ\0\0\x04");
    let (exit, text) = finish(load(&[&*file, "--url", &url]));
    assert!(exit == 1 && text.contains("it is xz") && text.contains("xz -dc"), "{text}");
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn shortened_file_is_not_loaded_again() {
    let folder = Folder::new();
    let server = Server::start(&folder.data());
    let url = server.url();
    let file = folder.write("a", "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n");
    let arguments = [&*file, "--url", &url];
    assert_eq!(finish(load(&arguments)).0, 0);
    let cut = fs::OpenOptions::new().write(true).open(folder.path("a")).unwrap();
    cut.set_len(8).unwrap();
    let (code, text) = finish(load(&arguments));
    assert!(code == 1 && text.contains("it was truncated"), "{text}");
    assert_eq!(server.metric("forebay_events_accepted_total"), 3);
    // Another content under the name is another file.
    fs::write(folder.path("a"), "[4]\n").unwrap();
    assert_eq!(finish(load(&arguments)).0, 0);
    assert_eq!(server.metric("forebay_events_accepted_total"), 4);
}
