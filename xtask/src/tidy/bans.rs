//! Texts that may not stand in the code of some places, each with what to write instead.

use super::Finding;
use super::code::lines_with;
use super::source::Source;

struct Ban {
    text: &'static str,
    /// Beginnings of paths in which the text is banned.
    within: &'static [&'static str],
    /// Beginnings of paths in which it is allowed all the same.
    except: &'static [&'static str],
    /// Whether tests are held to it too.
    tests_too: bool,
    instead: &'static str,
}

const JOURNAL: &[&str] = &["crates/journal/"];
/// `disk.rs`, and what stands in a folder of that name.
const JOURNAL_DISK: &[&str] = &["crates/journal/src/disk"];
const PURE: &[&str] = &["crates/event/", "crates/pipeline/"];
const CRATES: &[&str] = &["crates/"];
const EVERYWHERE: &[&str] = &["crates/", "xtask/"];
const DISK: &str = "use `Disk` and `DiskFile` of `journal::disk`: a simulated disk must be able to stand in";
const CLOCK: &str = "take the time as an argument: these crates read no clock";
const PURITY: &str = "these crates touch no disk and no network: take bytes as arguments";
const ENVIRONMENT: &str = "take it as an argument: only crate `forebay` reads configuration and the environment";
/// Modules that somebody has read line by line for what `unsafe` asks of them: none so far.
const AUDITED: &[&str] = &[];

const BANS: &[Ban] = &[
    Ban { text: "fs::", within: JOURNAL, except: JOURNAL_DISK, tests_too: false, instead: DISK },
    Ban { text: "std::fs", within: JOURNAL, except: JOURNAL_DISK, tests_too: false, instead: DISK },
    Ban { text: "File::", within: JOURNAL, except: JOURNAL_DISK, tests_too: false, instead: DISK },
    Ban { text: "OpenOptions", within: JOURNAL, except: JOURNAL_DISK, tests_too: false, instead: DISK },
    Ban { text: "std::env", within: CRATES, except: &["crates/forebay/"], tests_too: false, instead: ENVIRONMENT },
    Ban { text: "env::var", within: CRATES, except: &["crates/forebay/"], tests_too: false, instead: ENVIRONMENT },
    Ban { text: "SystemTime::now", within: PURE, except: &[], tests_too: false, instead: CLOCK },
    Ban { text: "Instant::now", within: PURE, except: &[], tests_too: false, instead: CLOCK },
    Ban { text: "std::fs", within: PURE, except: &[], tests_too: false, instead: PURITY },
    Ban { text: "std::net", within: PURE, except: &[], tests_too: false, instead: PURITY },
    Ban {
        text: "dyn Sink",
        within: EVERYWHERE,
        except: &[],
        tests_too: true,
        instead: "add a variant to the enum of sinks: one `match` builds them, and nothing is dispatched unseen",
    },
    Ban {
        text: "macro_rules!",
        within: EVERYWHERE,
        except: &[],
        tests_too: true,
        instead: "write a function, or a table and a loop over it",
    },
    Ban {
        text: "unsafe",
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
        let message = format!("`{}` is banned here: {}", ban.text, ban.instead);
        lines_with(code, ban.text).into_iter().map(move |line| source.finding(line, message.clone()))
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
    fn each_ban_holds_where_it_is_meant_to_and_only_there() {
        for ban in BANS {
            let text = format!("//! {0}\nlet x = {0} y;\nlet z = \"{0}\";\n", ban.text);
            for within in ban.within {
                assert!(lines(&format!("{within}src/a.rs"), &text).contains(&2), "{} in {within}", ban.text);
                let quoted_only = format!("//! {0}\nlet z = \"{0}\";\n", ban.text);
                assert!(lines(&format!("{within}src/a.rs"), &quoted_only).is_empty(), "{}", ban.text);
            }
        }
    }

    #[test]
    fn the_doors_stay_open() {
        assert!(lines("crates/journal/src/disk.rs", "use std::fs::File; File::open()").is_empty());
        assert!(lines("crates/forebay/src/main.rs", "std::env::args()").is_empty());
        assert!(lines("crates/gateway/src/a.rs", "Instant::now(); std::fs::read()").is_empty());
        assert!(lines("crates/event/src/a.rs", "ProfileFile::x; unsafe_code").is_empty());
    }

    #[test]
    fn tests_may_use_files_but_not_unsafe() {
        let text = "#[cfg(test)]\nmod tests {\n std::fs::read(); unsafe { x }\n}\n";
        assert_eq!(lines("crates/journal/src/a.rs", text), [3]);
        assert_eq!(lines("crates/journal/tests/a.rs", "std::fs::read()"), []);
    }
}
