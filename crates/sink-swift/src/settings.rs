//! The settings of sinks of kind `swift`: authentication, the container and its objects.

use objects::over_http::settings::{self as over_http, secret, url, word};
use objects::{OBJECT_LAYOUT, OBJECT_SETTINGS, layout_of};
use sink::{Destination, Layout, Sink, SinkKind, StoreConfig};
use std::fmt;
use std::path::Path;

use crate::{Auth, KeystoneIdentity, SwiftConfig};
use settings::client::{self, ca, timeout};
use settings::{Diagnostic, Section, Setting, SettingsReader, URL, Unset, parsed};

/// The end of the URL of Keystone's third version.
const KEYSTONE: &str = "/v3";
const DOMAIN: &str = "Default";
const SETTINGS: &[Setting] = &[
    Setting::new(
        "auth",
        URL,
        "the URL that issues tokens: the whole URL of TempAuth, as `https://HOST/auth/v1.0`, or that of Keystone, which ends with `/v3`",
    )
    .required()
    .example("\"https://swift.example.org/auth/v1.0\""),
    Setting::text("user", "the user: `ACCOUNT:USER` for TempAuth, the name for Keystone")
        .or(Unset::Described("required without an application credential"))
        .example("\"test:tester\""),
    Setting::text("key", "the key, password, or secret of the application credential").required().example("\"${SWIFT_KEY}\""),
    Setting::text(
        "application_credential",
        "for Keystone: the id of an application credential, instead of `user`, `project` and `domain`",
    )
    .example("\"6b9ba3fd\""),
    Setting::text("project", "the project's name")
        .or(Unset::Described("required with `user` for Keystone"))
        .example("\"events\""),
    Setting::text("domain", "for Keystone: the name of the domain of user and project").or(Unset::Text(DOMAIN)),
    Setting::text("region", "for Keystone: the region of the endpoint")
        .or(Unset::Described("the catalogue's first"))
        .example("\"eu-1\""),
    Setting::text(
        "container",
        "the container; Forebay creates a missing one. 1 to 256 bytes of UTF-8 without `/` and control characters, not `.` or `..`. Two sinks \
         can share one if their `object` differs",
    )
    .required()
    .example("\"events\""),
    client::CA,
    over_http::TIMEOUT,
];

/// The kind of account, by its settings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    TempAuth,
    Password,
    Application,
}

impl By {
    const fn takes(self, setting: &str) -> bool {
        match setting.as_bytes() {
            b"user" => !matches!(self, Self::Application),
            b"project" | b"domain" => matches!(self, Self::Password),
            _ => !matches!(self, Self::TempAuth),
        }
    }
}

/// Reads the settings; a relative `ca` starts at `folder`.
fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, folder: &Path) -> Option<SwiftConfig> {
    let auth = auth(reader, section);
    let help = "add the container of the objects, as in container = \"events\"";
    let container = reader.required(section, "container", help, parsed("isn't a valid container name"));
    let rules = over_http::rules(reader, section);
    let (ca, timeout) = (ca(reader, section, folder), timeout(reader, section));
    Some(SwiftConfig { auth: auth?, container: container?, rules, ca, timeout })
}

fn auth(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<Auth> {
    let help =
        "add the token service, as in auth = \"http://HOST:8080/auth/v1.0\", or \"https://HOST:5000/v3\" for Keystone";
    let url = reader.required(section, "auth", help, url);
    let credential = reader.text(section, "application_credential", word);
    let is_keystone = url.as_ref().is_some_and(|url| url.to_string().ends_with(KEYSTONE));
    let by = match (is_keystone, &credential) {
        (false, _) => By::TempAuth,
        (true, None) => By::Password,
        (true, Some(_)) => By::Application,
    };
    if url.is_some() {
        report_unused(reader, section, by);
    }
    let key = reader.required(section, "key", "add the key, best as key = \"${SWIFT_KEY}\"", secret);
    let user = by.takes("user").then(|| reader.required(section, "user", "add the user", word));
    let region = reader.text(section, "region", word).map(|found| found.value);
    Some(match by {
        By::TempAuth => Auth::TempAuth { url: url?, user: user??, key: key? },
        By::Application => {
            let identity = KeystoneIdentity::Application { id: credential?.value, secret: key? };
            Auth::Keystone { url: url?, identity, region }
        }
        By::Password => {
            let project = reader.required(section, "project", "add the project that owns the containers", word);
            let domain = reader.text_or(section, "domain", DOMAIN, word);
            let identity = KeystoneIdentity::Password { user: user??, key: key?, project: project?, domain: domain? };
            Auth::Keystone { url: url?, identity, region }
        }
    })
}

/// Reports settings that would be ignored.
fn report_unused(reader: &mut SettingsReader<'_>, section: &Section<'_>, by: By) {
    let others = ["user", "application_credential", "project", "domain", "region"].into_iter();
    for setting in others.filter(|setting| !by.takes(setting)) {
        let Some(found) = reader.text(section, setting, |_| Ok(())) else { continue };
        let title = format!("unused setting `{}`", section.key_path(setting));
        let label = match by {
            By::TempAuth => "only for Keystone, whose URL ends with /v3",
            By::Password | By::Application => "an application credential includes its user and its project",
        };
        reader.push(Diagnostic::new(title, found.span, label.to_owned()));
    }
}

/// Sinks of kind `swift`.
pub static KIND: SinkKind = SinkKind {
    settings: &[SETTINGS, over_http::SETTINGS, OBJECT_SETTINGS],
    secrets: &["key", "application_credential"],
    urls: &["auth"],
    layout: &[("", OBJECT_LAYOUT), ("", over_http::LAYOUT)],
    ..SinkKind::new("swift", |reader, section, folders| Some(Box::new(read(reader, section, folders.configuration)?)))
};

impl StoreConfig for SwiftConfig {
    fn kind(&self) -> &'static SinkKind {
        &KIND
    }

    fn build(&self) -> Sink {
        crate::sink(self.clone())
    }

    fn destination(&self) -> Option<Destination> {
        let id = vec![
            self.kind().name.to_owned(),
            self.auth.account(),
            self.container.to_string(),
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

impl fmt::Display for SwiftConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { auth, container, rules, .. } = self;
        write!(f, "swift {}, container {container}, {}", auth.url(), rules.summary())
    }
}
