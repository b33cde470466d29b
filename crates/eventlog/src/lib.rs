//! eventlog
