//! What slows a process down, as JSON: findings, and the figures of its host.

use serde::{Deserialize, Serialize};

/// The answer of [`API_HEALTH`](crate::paths::API_HEALTH).
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct HealthJson {
    /// What slowed the process down in the last minute. Empty: nothing did.
    pub findings: Vec<FindingJson>,
    pub host: HostJson,
}

/// What slowed a process down in the last minute, or what needs an operator.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct FindingJson {
    /// A word for programs: `cpu_throttled`.
    pub code: String,
    #[serde(default)]
    pub level: FindingLevel,
    /// When it was seen first, in RFC 3339.
    #[serde(default)]
    pub since: String,
    /// A sentence with figures, and a remedy.
    pub text: String,
    /// The address of the console's page about it, after `#/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingLevel {
    /// The process is slower than it could be, or will soon be.
    #[default]
    Warning,
    /// Clients or operators lost something: requests were rejected, or log lines dropped. Or the process needs an operator.
    Error,
}

/// The figures of a process and its container. What can't be read, or has no limit, is `None`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct HostJson {
    /// CPUs that the process used on average in the last minute: 0.5 is half of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    /// CPUs that the container may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_limit: Option<f64>,
    /// The share of the last minute in which the container's CPU limit held it, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled: Option<f64>,
    /// Memory of the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rss_bytes: Option<u64>,
    /// The container's limit of memory, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<u64>,
    /// Free space on the disk of the data directory. A writer has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_free_bytes: Option<u64>,
}
