//! Texts that are banned from the code of some folders, each with what to write instead.

use std::collections::BTreeSet;

use super::Finding;
use super::code::lines_with;
use super::source::Source;

struct Ban {
    /// Each way to write it.
    texts: &'static [&'static str],
    /// Beginnings of paths in which the texts are banned.
    within: &'static [&'static str],
    /// Beginnings of paths in which they are allowed nevertheless.
    except: &'static [&'static str],
    /// Whether the ban includes tests.
    tests_too: bool,
    instead: &'static str,
}

const PURE: &[&str] = &[
    "crates/access/",
    "crates/event/",
    "crates/did_you_mean/",
    "crates/json/",
    "crates/pattern/",
    "crates/timestamp/",
    "crates/expression/",
    "crates/schema/",
    "crates/transform/",
    "crates/schema_tools/",
    "crates/aggregate/",
];
const EVERYWHERE: &[&str] = &["bench/", "crates/", "xtask/"];

/// Modules whose uses of `unsafe` were audited line by line.
const AUDITED: &[&str] = &["crates/forebay/src/allocator.rs", "crates/profile/src/machine.rs"];

const BANS: &[Ban] = &[
    Ban {
        texts: &["std::fs", "fs::"],
        within: &["crates/journal/"],
        except: &["crates/journal/src/disk.rs"],
        tests_too: false,
        instead: "use `Disk` and `DiskFile` of `journal::disk`: tests replace them with a simulated disk",
    },
    Ban {
        texts: &["std::env", "env::var"],
        within: &["crates/"],
        except: &["crates/cli/", "crates/console/build.rs", "crates/forebay/", "crates/harness/", "crates/testkit/"],
        tests_too: false,
        instead: "take it as an argument: only crates `cli` and `forebay` read configuration and the environment",
    },
    Ban {
        texts: &["SystemTime::now", "Instant::now"],
        within: PURE,
        except: &[],
        tests_too: false,
        instead: "take the time as an argument: these crates read no clock",
    },
    Ban {
        texts: &["SystemTime::now"],
        within: &["crates/"],
        except: &[
            "crates/clock/",
            "crates/access/",
            "crates/event/",
            "crates/did_you_mean/",
            "crates/json/",
            "crates/pattern/",
            "crates/timestamp/",
            "crates/expression/",
            "crates/schema/",
            "crates/transform/",
            "crates/schema_tools/",
            "crates/aggregate/",
        ],
        tests_too: false,
        instead: "use crate `clock`: a clock before 1970 or beyond 9999 must not end the process",
    },
    Ban {
        texts: &["std::fs", "fs::", "std::net"],
        within: PURE,
        except: &[],
        tests_too: false,
        instead: "take bytes as arguments: these crates touch no disk and no network",
    },
    Ban {
        texts: &["macro_rules!"],
        within: EVERYWHERE,
        // No function implements serde's traits for types of several crates.
        except: &["crates/event/src/serde_as_text.rs"],
        tests_too: true,
        instead: "write a function, or a table and a loop over it",
    },
    Ban {
        texts: &["unsafe"],
        within: EVERYWHERE,
        except: AUDITED,
        tests_too: true,
        instead: "use a safe crate (rustix for system calls); a module that must be unsafe is audited and listed in tidy",
    },
];

/// The rule.
pub(super) fn banned_texts(source: &Source) -> Vec<Finding> {
    let begins = |paths: &[&str]| paths.iter().any(|path| source.path.starts_with(path));
    let bans = BANS.iter().filter(|ban| source.is_rust() && begins(ban.within) && !begins(ban.except));
    bans.flat_map(|ban| {
        let code = if ban.tests_too { source.code.as_str() } else { source.production() };
        let lines: BTreeSet<usize> = ban.texts.iter().flat_map(|text| lines_with(code, text)).collect();
        let message = format!("`{}` is banned here: {}", ban.texts[0], ban.instead);
        lines.into_iter().map(move |line| source.finding(line, message.clone()))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        banned_texts(&Source::new(path, text.into())).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn ban_holds_in_its_folders_only() {
        let texts = BANS.iter().flat_map(|ban| ban.texts.iter().map(move |text| (ban, text)));
        for (ban, text) in texts {
            for within in ban.within {
                let path = format!("{within}src/a.rs");
                assert_eq!(lines(&path, &format!("//! {text}\nlet x = {text} y;\n")), [2], "{text} in {within}");
                assert!(lines(&path, &format!("//! {text}\nlet z = \"{text}\";\n")).is_empty(), "{text}");
            }
        }
    }

    #[test]
    fn exceptions_are_allowed() {
        assert!(lines("crates/journal/src/disk.rs", "use std::fs::File; fs::rename()").is_empty());
        assert!(lines("crates/forebay/src/main.rs", "std::env::args()").is_empty());
        assert!(lines("crates/gateway/src/a.rs", "Instant::now(); std::fs::read()").is_empty());
        assert!(lines("crates/event/src/a.rs", "offs::x; unsafe_code").is_empty());
    }

    #[test]
    fn tests_may_use_files_but_not_unsafe() {
        let text = "#[cfg(test)]\nmod tests {\n std::fs::read(); unsafe { x }\n}\n";
        assert_eq!(lines("crates/journal/src/a.rs", text), [3]);
        assert!(lines("crates/journal/tests/a.rs", "std::fs::read()").is_empty());
    }
}
