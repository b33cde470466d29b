//! Reads the parts of a long list on all cores: with thousands of types that is what a start waits for.

use std::num::NonZeroUsize;
use std::thread;

use super::reader::Reader;

/// Parts that are worth a thread.
const PARTS_MIN: usize = 250;

/// Has `read` read all parts, each thread some that stand behind each other, and gives what it gives in the order of the parts.
/// What is found wrong is in that order too.
///
/// The results must have no [`super::report::Spot`] in a text that `read` has made known itself.
pub(super) fn read<'e, P: Sync, T: Send>(
    reader: &mut Reader<'e>,
    parts: &[P],
    read: impl Fn(&mut Reader<'e>, &[P]) -> Vec<T> + Sync,
) -> Vec<T> {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = cores.min(parts.len() / PARTS_MIN);
    if threads < 2 {
        return read(reader, parts);
    }
    let (first, others) = parts.split_at(parts.len().div_ceil(threads));
    let known = reader.fork();
    let apart = |parts: &[P]| {
        let mut reader = known.fork();
        let made = read(&mut reader, parts);
        (reader, made)
    };
    let apart = &apart;
    thread::scope(|scope| {
        let begun: Vec<_> = others
            .chunks(first.len())
            .map(|parts| (parts, thread::Builder::new().spawn_scoped(scope, move || apart(parts)).ok()))
            .collect();
        let mut all = read(reader, first);
        for (parts, thread) in begun {
            // What no thread could be had for is read here.
            let done = thread.and_then(|thread| thread.join().ok());
            let (found, made) = done.unwrap_or_else(|| apart(parts));
            reader.join(found, &known);
            all.extend(made);
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::super::environment::Environment;
    use super::super::report::{Mistake, Report, Spot};
    use super::*;

    /// One part in so many has a mistake.
    const TENTH: usize = 10;

    #[test]
    fn what_threads_find_stands_as_if_one_had_found_it() {
        let environment = Environment::default();
        let mut report = Report::default();
        let file = report.source("file", "all of it");
        let mut reader = Reader::new(&environment, report);
        let parts: Vec<usize> = (0..2 * PARTS_MIN + 1).collect();
        let made = read(&mut reader, &parts, |reader, parts| {
            let one = |part: &usize| {
                let source = reader.source(format!("part {part}"), part.to_string());
                let (at, also) = (Spot { source, span: 0..1 }, Spot { source: file, span: 0..3 });
                if part.is_multiple_of(TENTH) {
                    reader.push(Mistake::new(format!("title {part}"), at, "here").also(also, "of this"));
                }
                part * 2
            };
            parts.iter().map(one).collect()
        });
        assert_eq!(made, parts.iter().map(|part| part * 2).collect::<Vec<_>>());
        let shown = reader.finish().render(false);
        let wrong: Vec<usize> = parts.iter().copied().filter(|part| part.is_multiple_of(TENTH)).collect();
        let titles: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("error: title ")).collect();
        assert_eq!(titles, wrong.iter().map(usize::to_string).collect::<Vec<_>>());
        for part in wrong {
            assert!(shown.contains(&format!("--> part {part}:1:1")), "{part}: {shown}");
        }
        assert_eq!(shown.matches("file:1:1").count(), titles.len(), "{shown}");
    }
}
