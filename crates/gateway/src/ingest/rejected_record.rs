//! A record of a batch that is rejected, as the response lists it.

use std::borrow::Cow;

use serde::Serialize;

use crate::error_code::ErrorCode;
use crate::problem::{FailedStep, Problem};

/// How a rejected record can be accepted unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Retry {
    /// With its batch, sent again.
    Later,
    /// In a request without the records that its batch has before it.
    Alone,
}

/// A rejected record of a batch.
#[derive(Debug, Serialize)]
pub(crate) struct RejectedRecord {
    /// The line or element, from 1.
    line: u32,
    /// Which value of the line, from 2; none for its first.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<Box<str>>,
    pub(crate) code: ErrorCode,
    /// None if it has to be corrected first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry: Option<Retry>,
    detail: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<usize>,
    #[serde(flatten)]
    step: Option<Box<FailedStep>>,
}

impl RejectedRecord {
    /// Adds to the detail.
    pub(crate) fn add(&mut self, detail: &str) {
        self.detail = format!("{}; {detail}", self.detail).into();
    }

    pub(crate) fn of_problem(line: u32, value: u32, problem: Problem) -> Self {
        let Problem { code, detail, offset, pointer, step, .. } = problem;
        let retry = code.is_transient().then_some(Retry::Later);
        let value = Some(value).filter(|value| *value > 1);
        Self { line, value, pointer, code, retry, detail, offset, step }
    }

    /// What is wrong.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// Whether it says that the record is in another format than JSON.
    pub(crate) fn names_a_format(&self) -> bool {
        ["this is ", "these are "].iter().any(|words| self.detail.starts_with(words))
    }

    /// The line, and which value of it.
    pub(crate) fn place(&self) -> (u32, u32) {
        (self.line, self.value.unwrap_or(1))
    }

    /// About how many bytes it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.detail.len() + self.pointer.as_deref().map_or(0, str::len)
    }
}
