//! The process: its limits, and its service manager.

pub(crate) mod descriptors;
pub(crate) mod disk_size;
pub(crate) mod file_size;
pub(crate) mod service_manager;
