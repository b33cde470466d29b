//! The settings of sinks of kind `s3`: the service, its credentials, the bucket and its objects.

use objects::over_http::settings::{self as over_http, secret, url, word};
use objects::{OBJECT_LAYOUT, OBJECT_SETTINGS, layout_of};
use sink::{Destination, Layout, Sink, SinkKind, StoreConfig};
use std::fmt;
use std::path::Path;

use crate::{Bucket, S3Config};
use settings::client::{self, ca, timeout};
use settings::{Diagnostic, InvalidValue, Kind, Section, Setting, SettingsReader, URL, Unset, parsed};

const REGION: &str = "us-east-1";
const SETTINGS: &[Setting] = &[
    Setting::new("url", URL, "the service's URL without the bucket, as `http://HOST:PORT`")
        .required()
        .example("\"https://s3.eu-central-1.amazonaws.com\""),
    Setting::text("region", "the region of the signatures of requests").or(Unset::Text(REGION)),
    Setting::text(
        "bucket",
        "the bucket; Forebay creates a missing one. 3 to 63 of a-z, 0-9, `-` and `.`, a letter or digit at both ends. Two sinks can \
         share one if their `object` differs",
    )
    .required()
    .example("\"events\""),
    Setting::text("access_key", "the id of the key that requests are signed with").required().example("\"${S3_ACCESS_KEY}\""),
    Setting::text("secret_key", "the secret of the key").required().example("\"${S3_SECRET_KEY}\""),
    Setting::new("path_style", Kind::Boolean, "`true` puts the bucket into the path, `false` before the host's name")
        .or(Unset::Boolean(true)),
    client::CA,
    over_http::TIMEOUT,
];

/// Reads the settings; a relative `ca` starts at `folder`.
fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, folder: &Path) -> Option<S3Config> {
    let help = "add the service, as in url = \"https://s3.eu-central-1.amazonaws.com\"";
    let url = reader.required(section, "url", help, url);
    let region = reader.text_or(section, "region", REGION, region);
    let help = "add the bucket, as in bucket = \"events\"";
    let bucket: Option<Bucket> = reader.required(section, "bucket", help, parsed("isn't a valid bucket name"));
    let access_key =
        reader.required(section, "access_key", "add the id of the key that requests are signed with", word);
    let help = "add the secret of the key, best as secret_key = \"${S3_SECRET}\"";
    let secret_key = reader.required(section, "secret_key", help, secret);
    let path_style = reader.boolean(section, "path_style");
    let is_in_host = path_style.as_ref().is_some_and(|found| !found.value);
    let rules = over_http::rules(reader, section);
    let (ca, timeout) = (ca(reader, section, folder), timeout(reader, section));
    let has_dots = bucket.as_ref().is_some_and(|bucket| bucket.to_string().contains('.'));
    let is_secure = url.as_ref().is_some_and(|url| url.to_string().starts_with("https://"));
    // With a private authority, a service may have a certificate that names the bucket.
    if let Some(found) = path_style.filter(|_| is_in_host && has_dots && is_secure && ca.is_none()) {
        let title = format!("`{}` can't be false for a bucket with dots", section.key_path("path_style"));
        let label = "a certificate for *.HOST doesn't cover a name with more dots: remove the setting, or set another \
            `bucket`";
        reader.push(Diagnostic::new(title, found.span, label.to_owned()));
    }
    Some(S3Config {
        url: url?,
        is_in_host,
        region: region?,
        bucket: bucket?,
        access_key: access_key?,
        secret_key: secret_key?,
        rules,
        ca,
        timeout,
    })
}

/// Every signature contains it, between slashes.
fn region(text: &str) -> Result<String, InvalidValue> {
    let good = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if good {
        Ok(text.to_owned())
    } else {
        Err(InvalidValue::new("isn't a region", "expected ASCII letters, digits and -"))
    }
}

/// Sinks of kind `s3`.
pub static KIND: SinkKind = SinkKind {
    settings: &[SETTINGS, over_http::SETTINGS, OBJECT_SETTINGS],
    secrets: &["secret_key"],
    urls: &["url"],
    layout: &[("", OBJECT_LAYOUT), ("", over_http::LAYOUT)],
    ..SinkKind::new("s3", |reader, section, folders| Some(Box::new(read(reader, section, folders.configuration)?)))
};

impl StoreConfig for S3Config {
    fn kind(&self) -> &'static SinkKind {
        &KIND
    }

    fn build(&self) -> Sink {
        crate::sink(self.clone())
    }

    fn destination(&self) -> Option<Destination> {
        let id = vec![
            self.kind().name.to_owned(),
            self.url.to_string(),
            self.bucket.to_string(),
            self.rules.prefix.to_string(),
        ];
        Some(Destination { id, what: "place", another: "another `object`" })
    }

    fn layout(&self) -> Layout {
        layout_of(&self.rules, "format")
    }

    fn memory_bytes(&self) -> usize {
        self.rules.memory_bytes()
    }
}

impl fmt::Display for S3Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, bucket, rules, .. } = self;
        write!(f, "s3 {url}, bucket {bucket}, {}", rules.summary())
    }
}
