//! What only a start needs of the program's code isn't kept in the process's memory: half of its pages are read once, to look at
//! flags and at the configuration, and then never again. See docs/decisions/015.
//!
//! One of the project's audited modules with `unsafe`: a call that no safe crate has as such.
#![cfg_attr(target_os = "linux", allow(unsafe_code, reason = "madvise, on pages that are the files' own"))]

use std::fs;

/// What the kernel tells of this process's memory (proc_pid_smaps(5)).
const MAPPINGS: &str = "/proc/self/smaps";

/// Lets go of the pages of the program and its libraries. Those that are needed again come back by themselves, from the file.
/// Where the kernel tells nothing of them, or refuses, nothing is changed.
pub(crate) fn let_go() {
    let Ok(text) = fs::read_to_string(MAPPINGS) else { return };
    pages_of_files(&text).into_iter().for_each(|pages| pages.let_go());
}

/// A range of addresses whose content is a file's, and nobody's own.
#[derive(Debug, PartialEq, Eq)]
struct Pages {
    start: usize,
    length: usize,
}

impl Pages {
    #[cfg(target_os = "linux")]
    fn let_go(&self) {
        let start = std::ptr::with_exposed_provenance_mut(self.start);
        // SAFETY: no page of the range is the process's own, nor can become so, and each comes back from its file when it is
        // touched next; threads that run there meanwhile wait for it. The kernel does the same by itself wherever memory
        // is short, so that nothing is asked of these files that wasn't before.
        unsafe {
            libc::madvise(start, self.length, libc::MADV_DONTNEED);
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn let_go(&self) {}
}

/// The ranges of a file that are read-only or code, in which the process has no pages of its own. A range begins with a line such as
/// `55d0-55f0 r-xp 00001000 fe:00 1234  /usr/bin/x`; what is said of it follows, a fact a line. Pages of its own are anonymous, or
/// swapped out; a kernel that tells only one of the two is believed in nothing.
fn pages_of_files(text: &str) -> Vec<Pages> {
    let (mut found, mut last, mut none_of_its_own) = (Vec::new(), None, 0);
    for line in text.lines() {
        if let Some(range) = range(line) {
            (last, none_of_its_own) = (range, 0);
        } else if let Some(own) = line.strip_prefix("Anonymous:").or_else(|| line.strip_prefix("Swap:")) {
            none_of_its_own += u8::from(own.trim() == "0 kB");
            found.extend(last.take_if(|_| none_of_its_own == 2));
        }
    }
    found
}

/// `None` for a line that begins no range, and nothing within for a range that isn't a file's or can be written to.
fn range(line: &str) -> Option<Option<Pages>> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    let permissions = words.next()?;
    let is_fixed = permissions.starts_with("r-") && permissions.ends_with('p');
    let is_of_file = words.nth(3).is_some_and(|path| path.starts_with('/'));
    Some((is_fixed && is_of_file).then(|| Pages { start, length: end.saturating_sub(start) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_the_files_own_is_let_go() {
        let facts = |line: &str, own: &str, swap: &str| {
            format!("{line}\nSize: 8 kB\nRss: 8 kB\nAnonymous:      {own}\nSwap:    {swap}\nVmFlags: rd ex\n")
        };
        let range = |line: &str, own: &str| facts(line, own, "0 kB");
        let text = [
            range("1000-3000 r--p 00000000 fe:00 12                 /bin/x", "0 kB"),
            range("3000-4000 r-xp 00002000 fe:00 12                 /bin/x", "0 kB"),
            range("4000-6000 r--p 00003000 fe:00 12                 /bin/x", "4 kB"),
            facts("5000-6000 r--p 00003000 fe:00 12                 /bin/y", "0 kB", "4 kB"),
            range("6000-7000 rw-p 00005000 fe:00 12                 /bin/x", "0 kB"),
            range("7000-8000 r--s 00000000 fe:00 13                 /tmp/shared", "0 kB"),
            range("8000-9000 r-xp 00000000 00:00 0                  [vdso]", "0 kB"),
            range("9000-a000 r--p 00000000 00:00 0 ", "0 kB"),
            range("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]", "0 kB"),
        ];
        let wanted = [Pages { start: 0x1000, length: 0x2000 }, Pages { start: 0x3000, length: 0x1000 }];
        assert_eq!(pages_of_files(&text.concat()), wanted);
        assert_eq!(pages_of_files("no mappings\n"), []);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_was_let_go_comes_back() {
        let resident = || -> u64 {
            let text = fs::read_to_string(MAPPINGS).unwrap();
            let code =
                text.split("\nVmFlags:").find(|mapping| mapping.contains(" r-xp ") && mapping.contains("/forebay"));
            let rss = code.unwrap().lines().find_map(|line| line.strip_prefix("Rss:")?.trim().strip_suffix(" kB"));
            rss.unwrap().parse().unwrap()
        };
        let before = resident();
        let_go();
        assert!(resident() < before, "{before} kB before");
        only_what_is_the_files_own_is_let_go();
    }
}
