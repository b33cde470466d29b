//! The action for each place of a segment where a block should be: a table that covers every case once. Logs, reports
//! and tests use its codes, `A` to `G`.

/// The content at the place of a block's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// A valid header of this segment.
    Valid,
    /// Bytes that were such a header once.
    Damaged,
    /// Zeros, bytes of a segment that used the file before, or the end of the file.
    Blank,
}

/// The content at the place of the block's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Every record is intact.
    Valid,
    /// At least one is damaged, or the file ends too early.
    Damaged,
    /// Without a valid header the end of the records is unknown.
    Unknown,
}

/// The action for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockAction {
    /// The block is part of the log.
    Keep,
    /// The log continues after it, so it was acknowledged and is damaged now: its undamaged records are delivered, the
    /// others are reported by position.
    Quarantine,
    /// Nothing follows it: a commit that a crash interrupted, or a rotten last block. Requests with only undamaged
    /// records are kept, the rest is saved to a separate file and reported.
    Cut,
    /// The log ends here.
    End,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) case: char,
    header: Header,
    body: Body,
    /// Whether the log is known to continue: with an intact block, a later segment, or an acknowledged position after
    /// it. `None` matches both.
    continues: Option<bool>,
    pub(crate) verdict: BlockAction,
}

#[rustfmt::skip]
pub(crate) const TABLE: [Row; 7] = [
    Row { case: 'A', header: Header::Valid,   body: Body::Valid,   continues: None,        verdict: BlockAction::Keep },
    Row { case: 'B', header: Header::Valid,   body: Body::Damaged, continues: Some(true),  verdict: BlockAction::Quarantine },
    Row { case: 'C', header: Header::Valid,   body: Body::Damaged, continues: Some(false), verdict: BlockAction::Cut },
    Row { case: 'D', header: Header::Damaged, body: Body::Unknown, continues: Some(true),  verdict: BlockAction::Quarantine },
    Row { case: 'E', header: Header::Damaged, body: Body::Unknown, continues: Some(false), verdict: BlockAction::Cut },
    Row { case: 'F', header: Header::Blank,   body: Body::Unknown, continues: Some(true),  verdict: BlockAction::Quarantine },
    Row { case: 'G', header: Header::Blank,   body: Body::Unknown, continues: Some(false), verdict: BlockAction::End },
];

/// The row for this content.
pub(crate) fn decide(header: Header, body: Body, continues: bool) -> &'static Row {
    let row = TABLE.iter().find(|row| row.covers(header, body, continues));
    row.expect("the table covers every case: tested")
}

impl Row {
    fn covers(&self, header: Header, body: Body, continues: bool) -> bool {
        self.header == header && self.body == body && self.continues.is_none_or(|expected| expected == continues)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All observable cases: a body is read if and only if its header is valid.
    fn observable() -> impl Iterator<Item = (Header, Body, bool)> {
        let places = [
            (Header::Valid, Body::Valid),
            (Header::Valid, Body::Damaged),
            (Header::Damaged, Body::Unknown),
            (Header::Blank, Body::Unknown),
        ];
        places.into_iter().flat_map(|(header, body)| [(header, body, false), (header, body, true)])
    }

    #[test]
    fn every_case_has_exactly_one_row() {
        for (header, body, continues) in observable() {
            let rows: Vec<char> =
                TABLE.iter().filter(|row| row.covers(header, body, continues)).map(|row| row.case).collect();
            assert_eq!(rows.len(), 1, "{header:?} {body:?} continues={continues}: rows {rows:?}");
        }
    }

    #[test]
    fn every_row_has_a_case_and_code() {
        for (at, row) in TABLE.iter().enumerate() {
            assert!(observable().any(|(header, body, continues)| row.covers(header, body, continues)), "{}", row.case);
            assert!(TABLE[..at].iter().all(|other| other.case < row.case));
        }
    }

    #[test]
    fn acknowledged_blocks_are_never_cut() {
        for (header, body, _) in observable() {
            let verdict = decide(header, body, true).verdict;
            assert!(matches!(verdict, BlockAction::Keep | BlockAction::Quarantine), "{header:?} {body:?}: {verdict:?}");
        }
    }
}
