//! The survey of a shard's segments: their headers, in order.

use std::collections::VecDeque;
use std::path::PathBuf;

use crate::open_error::OpenError;
use crate::recovery_report::{Finding, SEGMENT_HEADER_COPY_DAMAGED, SEGMENT_HEADER_DAMAGED};
use crate::segment::{self, HeaderPage, SegmentHeader};
use crate::shard_options::ShardOptions;

/// The content of the segments' headers.
pub(crate) struct Survey {
    /// The readable segments, oldest first.
    pub(crate) headers: VecDeque<SegmentHeader>,
    /// Segments newer than all readable ones whose header is damaged.
    pub(crate) unreadable_newest: usize,
    /// All of these, and their new names.
    pub(crate) unreadable: Vec<(PathBuf, PathBuf)>,
    pub(crate) next_generation: u64,
    pub(crate) findings: Vec<Finding>,
}

impl Survey {
    pub(crate) fn read(options: &ShardOptions, names: &[String]) -> Result<Self, OpenError> {
        let mut generations: Vec<u64> = names.iter().filter_map(|name| segment::generation_of(name)).collect();
        generations.sort_unstable();
        let mut survey = Self {
            headers: VecDeque::new(),
            unreadable_newest: 0,
            unreadable: Vec::new(),
            next_generation: 1,
            findings: Vec::new(),
        };
        for generation in generations {
            survey_segment(options, generation, &mut survey)?;
        }
        let newest = survey.headers.back().map_or(0, |header| header.generation);
        survey.next_generation = free_generation(newest + 1, names);
        Ok(survey)
    }
}

/// The next generation after the readable ones without a file, including renamed ones. A file's name alone doesn't
/// prove that its generation was in use: any program can create such a file.
fn free_generation(mut generation: u64, names: &[String]) -> u64 {
    let stem = |generation: u64| format!("{generation:016x}.");
    while names.iter().any(|name| name.starts_with(&stem(generation))) {
        generation += 1;
    }
    generation
}

fn survey_segment(options: &ShardOptions, generation: u64, survey: &mut Survey) -> Result<(), OpenError> {
    let path = segment::path(&options.directory, generation);
    let io_error = |source| OpenError::Io { directory: options.directory.clone(), source };
    match segment::read_header(&options.disk, &path).map_err(io_error)? {
        HeaderPage::Valid { header, one_copy_damaged } if header.generation == generation => {
            if (header.origin, header.shard) != (options.origin, options.shard) {
                return Err(OpenError::Foreign { path, found: header.origin, shard: header.shard });
            }
            if one_copy_damaged {
                survey.findings.push(Finding::of_segment(SEGMENT_HEADER_COPY_DAMAGED, generation, None));
            }
            survey.unreadable_newest = 0;
            survey.headers.push_back(header);
        }
        HeaderPage::OtherFormat(found) => return Err(OpenError::Format { path, found }),
        HeaderPage::Valid { .. } | HeaderPage::Damaged => {
            let aside = path.with_extension("quarantined");
            survey.unreadable_newest += 1;
            survey.findings.push(Finding::of_segment(SEGMENT_HEADER_DAMAGED, generation, Some(aside.clone())));
            survey.unreadable.push((path, aside));
        }
    }
    Ok(())
}
