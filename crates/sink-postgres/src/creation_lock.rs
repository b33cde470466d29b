//! The advisory lock of those that create tables.

/// Sessions that create tables at the same time wait for each other. No other program uses this number.
pub(super) const CREATION_LOCK: i64 = 0x666f_7265_6261_7900;
