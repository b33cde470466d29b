//! What is done at each place of a segment where a block should stand: a table that covers every case once.
//! Logs, reports and tests use its letters.

/// What stands where a block's header should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// A sound header of this segment.
    Sound,
    /// Bytes that were such a header once.
    Damaged,
    /// Zeros, bytes of a segment that used the file before, or the end of the file.
    Blank,
}

/// What stands where the block's records should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Every record is as it was written.
    Sound,
    /// At least one is not, or the file ends too early.
    Damaged,
    /// Without a sound header nobody knows where the records end.
    Unknown,
}

/// What is done with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockAction {
    /// The block is part of the log.
    Keep,
    /// The log goes on behind it, so it was acknowledged and is damaged now: its undamaged records are delivered,
    /// the others are reported by position.
    Quarantine,
    /// Nothing follows it: a commit that a crash interrupted, or a rotten last block. The requests of which every
    /// record is undamaged are kept, the rest is saved aside and reported.
    Cut,
    /// The log ends here.
    End,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) letter: char,
    header: Header,
    body: Body,
    /// Whether the log is known to go on: a sound block, a later segment, or an acknowledged position behind it.
    /// `None` stands for either.
    goes_on: Option<bool>,
    pub(crate) verdict: BlockAction,
}

#[rustfmt::skip]
pub(crate) const TABLE: [Row; 7] = [
    Row { letter: 'A', header: Header::Sound,   body: Body::Sound,   goes_on: None,        verdict: BlockAction::Keep },
    Row { letter: 'B', header: Header::Sound,   body: Body::Damaged, goes_on: Some(true),  verdict: BlockAction::Quarantine },
    Row { letter: 'C', header: Header::Sound,   body: Body::Damaged, goes_on: Some(false), verdict: BlockAction::Cut },
    Row { letter: 'D', header: Header::Damaged, body: Body::Unknown, goes_on: Some(true),  verdict: BlockAction::Quarantine },
    Row { letter: 'E', header: Header::Damaged, body: Body::Unknown, goes_on: Some(false), verdict: BlockAction::Cut },
    Row { letter: 'F', header: Header::Blank,   body: Body::Unknown, goes_on: Some(true),  verdict: BlockAction::Quarantine },
    Row { letter: 'G', header: Header::Blank,   body: Body::Unknown, goes_on: Some(false), verdict: BlockAction::End },
];

/// The row for what was found.
pub(crate) fn decide(header: Header, body: Body, goes_on: bool) -> &'static Row {
    let row = TABLE.iter().find(|row| row.covers(header, body, goes_on));
    row.expect("the table covers every case: tested")
}

impl Row {
    fn covers(&self, header: Header, body: Body, goes_on: bool) -> bool {
        self.header == header && self.body == body && self.goes_on.is_none_or(|expected| expected == goes_on)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What can be observed: a body is looked at if and only if its header is sound.
    fn observable() -> impl Iterator<Item = (Header, Body, bool)> {
        let places = [
            (Header::Sound, Body::Sound),
            (Header::Sound, Body::Damaged),
            (Header::Damaged, Body::Unknown),
            (Header::Blank, Body::Unknown),
        ];
        places.into_iter().flat_map(|(header, body)| [(header, body, false), (header, body, true)])
    }

    #[test]
    fn every_case_has_exactly_one_row() {
        for (header, body, goes_on) in observable() {
            let rows: Vec<char> =
                TABLE.iter().filter(|row| row.covers(header, body, goes_on)).map(|row| row.letter).collect();
            assert_eq!(rows.len(), 1, "{header:?} {body:?} goes_on={goes_on}: rows {rows:?}");
        }
    }

    #[test]
    fn every_row_has_a_case_and_a_letter_of_its_own() {
        for (at, row) in TABLE.iter().enumerate() {
            assert!(observable().any(|(header, body, goes_on)| row.covers(header, body, goes_on)), "{}", row.letter);
            assert!(TABLE[..at].iter().all(|other| other.letter < row.letter));
        }
    }

    #[test]
    fn what_was_acknowledged_is_never_cut() {
        for (header, body, _) in observable() {
            let verdict = decide(header, body, true).verdict;
            assert!(matches!(verdict, BlockAction::Keep | BlockAction::Quarantine), "{header:?} {body:?}: {verdict:?}");
        }
    }
}
