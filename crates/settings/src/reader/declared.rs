//! Settings whose bounds and defaults are those of their declarations.

use std::fmt::Display;
use std::num::NonZeroUsize;
use std::time::Duration;

use crate::invalid_value::{InvalidValue, number_within};
use crate::reader::SettingsReader;
use crate::section::{Located, Section};
use crate::setting::{self, Setting, Unset};
use crate::{duration, size};

impl SettingsReader<'_> {
    /// A length of time within the bounds of the setting.
    pub fn duration(&mut self, section: &Section<'_>, setting: &Setting) -> Option<Located<Duration>> {
        let (min, max) = setting.times();
        self.text(section, setting.name, |text| duration::within(text, min, max))
    }

    /// The same, or the default.
    pub fn duration_or_default(&mut self, section: &Section<'_>, setting: &Setting) -> Duration {
        let default = if let Unset::Duration(default) = setting.default { default } else { Duration::ZERO };
        self.duration(section, setting).map_or(default, |found| found.value)
    }

    /// A number of bytes within the bounds of the setting.
    pub fn size(&mut self, section: &Section<'_>, setting: &Setting) -> Option<Located<u64>> {
        self.text(section, setting.name, |text| size_within(setting, text))
    }

    /// The same, or the default.
    pub fn size_or_default(&mut self, section: &Section<'_>, setting: &Setting) -> u64 {
        let default = if let Unset::Size(default) = setting.default { default } else { 0 };
        self.size(section, setting).map_or(default, |found| found.value)
    }

    /// A whole number within the bounds of the setting.
    pub fn number<N>(&mut self, section: &Section<'_>, setting: &Setting) -> Option<Located<N>>
    where
        N: TryFrom<i64> + PartialOrd + Display,
    {
        let (min, max) = setting.numbers();
        self.integer(section, setting.name, |number| {
            let number = number_within(number, min..=max)?;
            N::try_from(number).map_err(|_| InvalidValue::new("is out of range", format!("expected {min} to {max}")))
        })
    }

    /// A whole number within the bounds of the setting, which are above 0.
    pub fn count(&mut self, section: &Section<'_>, setting: &Setting) -> Option<Located<NonZeroUsize>> {
        let Located { value, span } = self.number::<usize>(section, setting)?;
        NonZeroUsize::new(value).map(|value| Located { value, span })
    }

    /// `true` or `false`, or the default.
    pub fn boolean_or_default(&mut self, section: &Section<'_>, setting: &Setting) -> bool {
        let default = matches!(setting.default, Unset::Boolean(true));
        self.boolean(section, setting.name).map_or(default, |found| found.value)
    }
}

/// Reads a number of bytes within the bounds of the setting.
fn size_within(setting: &Setting, text: &str) -> Result<u64, InvalidValue> {
    let (min, max) = setting.sizes();
    let bytes = size::parse(text)?;
    if (min..=max).contains(&bytes) {
        return Ok(bytes);
    }
    let (least, most) = (setting::size(min), setting::size(max));
    let expected = if min == 0 { format!("expected at most {most}") } else { format!("expected {least} to {most}") };
    Err(InvalidValue::new("is out of range", expected))
}
