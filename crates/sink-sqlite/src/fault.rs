//! What is at fault in each of SQLite's errors: a record, the store, or either.

use rusqlite::ffi;
use sink::Fault;

/// SQLite's result codes, without their extensions, and what is at fault, even if SQLite has already rolled back the
/// transaction. Codes that aren't listed are [`Fault::Unclear`].
const FAULTS: [(i32, Fault); 26] = [
    // Errors of expressions and functions, in triggers and generated columns too, have no separate code.
    (ffi::SQLITE_ERROR, Fault::Unclear),
    (ffi::SQLITE_ABORT, Fault::Unclear),
    (ffi::SQLITE_CONSTRAINT, Fault::Record),
    (ffi::SQLITE_TOOBIG, Fault::Record),
    (ffi::SQLITE_MISMATCH, Fault::Record),
    (ffi::SQLITE_INTERNAL, Fault::Store),
    (ffi::SQLITE_PERM, Fault::Store),
    (ffi::SQLITE_BUSY, Fault::Store),
    (ffi::SQLITE_LOCKED, Fault::Store),
    (ffi::SQLITE_NOMEM, Fault::Store),
    (ffi::SQLITE_READONLY, Fault::Store),
    (ffi::SQLITE_INTERRUPT, Fault::Store),
    (ffi::SQLITE_IOERR, Fault::Store),
    (ffi::SQLITE_CORRUPT, Fault::Store),
    (ffi::SQLITE_NOTFOUND, Fault::Store),
    (ffi::SQLITE_FULL, Fault::Store),
    (ffi::SQLITE_CANTOPEN, Fault::Store),
    (ffi::SQLITE_PROTOCOL, Fault::Store),
    (ffi::SQLITE_EMPTY, Fault::Store),
    (ffi::SQLITE_SCHEMA, Fault::Store),
    (ffi::SQLITE_MISUSE, Fault::Store),
    (ffi::SQLITE_NOLFS, Fault::Store),
    (ffi::SQLITE_AUTH, Fault::Store),
    (ffi::SQLITE_FORMAT, Fault::Store),
    (ffi::SQLITE_RANGE, Fault::Store),
    (ffi::SQLITE_NOTADB, Fault::Store),
];
/// The bits of a result code that its extensions share.
const PRIMARY: i32 = 0xff;

/// What is at fault in an error. Errors that SQLite itself didn't report are the store's.
pub(super) fn fault(error: &rusqlite::Error) -> Fault {
    let Some(failure) = error.sqlite_error() else { return Fault::Store };
    let code = failure.extended_code & PRIMARY;
    FAULTS.iter().find(|(listed, _)| *listed == code).map_or(Fault::Unclear, |(_, fault)| *fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: i32) -> Fault {
        fault(&rusqlite::Error::SqliteFailure(ffi::Error::new(code), None))
    }

    #[test]
    fn each_code_has_its_fault_with_all_extensions() {
        for (code, fault) in FAULTS {
            for extension in 0..=40 {
                assert_eq!(of(code | extension << 8), fault, "{code}, extension {extension}");
            }
        }
        assert_eq!(of(200), Fault::Unclear, "a code that isn't listed");
        assert_eq!(fault(&rusqlite::Error::QueryReturnedNoRows), Fault::Store);
    }

    #[test]
    fn no_code_is_listed_twice() {
        let mut codes: Vec<i32> = FAULTS.iter().map(|(code, _)| *code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), FAULTS.len());
        assert_eq!(codes, (ffi::SQLITE_ERROR..=ffi::SQLITE_NOTADB).collect::<Vec<_>>(), "all errors are listed");
    }
}
