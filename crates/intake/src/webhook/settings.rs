//! The settings of webhooks, and the scheme that they can describe.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json::JsonPointer;
use settings::{
    Diagnostic, InvalidValue, Located, POINTER, Section, Setting, SettingsReader, TEXTS, URL, Unset, parsed, words,
};

use super::algorithm::{ALGORITHMS, Algorithm, ENCODINGS, Encoding, Secret};
use super::provider::{CUSTOM, Handshake, NAMES, PROVIDERS, Provider, SecretForm};
use super::scheme::{self, Id, Part, Scheme, Time};
use super::verifier::Verifier;
use super::{VerifyToken, WebhookIntake};

const PROVIDER: Setting = Setting::choice(
    "provider",
    NAMES,
    "the sender, which decides how requests are signed; `hmac` describes another one by the settings below",
)
.or(Unset::Described("requests aren't signed, and tokens decide"))
.example("\"github\"");
const SECRETS: Setting = Setting::new(
    "secrets",
    TEXTS,
    "the secrets of the signatures. Each is valid, so a sender can change from one to another. Required with `provider`",
)
.example("[\"${GITHUB_SECRET}\"]");
const TOLERANCE: Setting = Setting::duration(
    "tolerance",
    (Duration::from_secs(1), Duration::from_hours(24)),
    "how far the signed time may be from this server's time; of providers that sign a time: `stripe`, `slack`, `standard`, `hmac`",
)
.or(Unset::Duration(Duration::from_mins(5)));
const PUBLIC_URL: Setting = Setting::new(
    "url",
    URL,
    "with `twilio`: the URL as it is entered there, without a query. Needed behind a proxy, because the signature covers it",
)
.or(Unset::Described("the URL of the request"))
.example("\"https://events.example.org/hooks/sms\"");
const VERIFY_TOKEN: Setting = Setting::text(
    "verify_token",
    "with `meta`: the verify token as it is entered there. Without one, Forebay rejects the handshake",
)
.example("\"${META_VERIFY_TOKEN}\"");
const HEADER: Setting = Setting::text("header", "with `hmac`: the header of the signature").example("\"X-Signature\"");
const ALGORITHM: Setting =
    Setting::choice("algorithm", &words(&ALGORITHMS), "with `hmac`: the hash function").or(Unset::Text("sha256"));
const ENCODING: Setting =
    Setting::choice("encoding", &words(&ENCODINGS), "with `hmac`: how the signature is written").or(Unset::Text("hex"));
const SIGNATURE_PREFIX: Setting = Setting::text(
    "prefix",
    "with `hmac`: what is before the signature. The header can have several elements, separated by commas, semicolons or blanks; those \
     that begin with the prefix are signatures",
)
.or(Unset::Text(""))
.example("\"sha256=\"");
const SIGNED: Setting =
    Setting::text("signed", "with `hmac`: the signed text, with the placeholders `{body}`, `{timestamp}` and `{id}`")
        .or(Unset::Text("{body}"))
        .example("\"{timestamp}.{body}\"");
const TIMESTAMP_HEADER: Setting = Setting::text(
    "timestamp_header",
    "with `hmac`: the header of `{timestamp}`, in seconds or milliseconds since 1970",
)
.example("\"X-Timestamp\"");
const TIMESTAMP_PREFIX: Setting = Setting::text(
    "timestamp_prefix",
    "with `hmac`: the element of the signature's header that begins so is `{timestamp}`",
)
.example("\"t=\"");
const ID_HEADER: Setting =
    Setting::text("id_header", "with `hmac`: the header of `{id}`, which is the id of the event").example("\"X-Id\"");
const ID_MEMBER: Setting =
    Setting::new("id_member", POINTER, "with `hmac`: the member of a JSON body that is the id of the event")
        .or(Unset::Described("the SHA-256 of the signed text is the id"))
        .example("\"/id\"");

/// The settings.
pub(super) const SETTINGS: &[Setting] = &[
    PROVIDER,
    SECRETS,
    TOLERANCE,
    PUBLIC_URL,
    VERIFY_TOKEN,
    HEADER,
    ALGORITHM,
    ENCODING,
    SIGNATURE_PREFIX,
    SIGNED,
    TIMESTAMP_HEADER,
    TIMESTAMP_PREFIX,
    ID_HEADER,
    ID_MEMBER,
];

/// The settings of `hmac`.
const OF_CUSTOM: [Setting; 9] =
    [HEADER, ALGORITHM, ENCODING, SIGNATURE_PREFIX, SIGNED, TIMESTAMP_HEADER, TIMESTAMP_PREFIX, ID_HEADER, ID_MEMBER];

/// Reads the settings.
pub(super) fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<WebhookIntake> {
    let errors_before = reader.errors();
    let name = reader.text(section, PROVIDER.name, provider);
    if name.is_none() && reader.errors() > errors_before {
        return None;
    }
    let provider = name.map(|found| found.value);
    check_unused(reader, section, provider);
    let verifier = match provider {
        Some(provider) => Some(Arc::new(verifier(reader, section, provider)?)),
        None => None,
    };
    let verify_token = reader.text(section, VERIFY_TOKEN.name, not_empty).map(|found| VerifyToken(found.value));
    let handshake = provider.map_or(Handshake::None, |provider| provider.handshake);
    (reader.errors() == errors_before).then_some(WebhookIntake { verifier, handshake, verify_token })
}

fn provider(text: &str) -> Result<&'static Provider, InvalidValue> {
    let known = PROVIDERS.iter().find(|provider| provider.name == text);
    known.ok_or_else(|| InvalidValue::new("is unknown", format!("expected one of {}", NAMES.join(", "))))
}

fn verifier(reader: &mut SettingsReader<'_>, section: &Section<'_>, provider: &Provider) -> Option<Verifier> {
    let schemes = if provider.name == CUSTOM {
        custom(reader, section).map(|scheme| vec![scheme])
    } else {
        Some((provider.schemes)())
    };
    let algorithms = schemes.as_deref().and_then(|schemes| Some(schemes.first()?.algorithms)).unwrap_or_default();
    let secret = |text: &str| {
        let bytes = secret_bytes(provider, text)?;
        Ok(algorithms.iter().map(|algorithm| Secret::new(*algorithm, &bytes)).collect::<Vec<_>>())
    };
    let errors_before = reader.errors();
    let secrets = reader.parsed_texts(section, SECRETS.name, secret);
    if secrets.is_empty() && reader.errors() == errors_before {
        reader.missing(
            section,
            SECRETS.name,
            "add the secret that the sender signs with, as in secrets = [\"${SECRET}\"]",
        );
    }
    let tolerance = reader.duration_or_default(section, &TOLERANCE);
    let url = reader.text(section, PUBLIC_URL.name, public_url).map(|found| found.value);
    let secrets = secrets.into_iter().flat_map(|found| found.value).collect();
    Some(Verifier { schemes: schemes?, secrets, tolerance, url })
}

fn secret_bytes(provider: &Provider, text: &str) -> Result<Vec<u8>, InvalidValue> {
    match provider.secrets {
        _ if text.is_empty() => {
            Err(InvalidValue::new("has an empty secret", "this secret is empty: anyone could sign with it"))
        }
        SecretForm::Text => Ok(text.as_bytes().to_vec()),
        SecretForm::Standard => {
            let encoded = text.strip_prefix("whsec_").unwrap_or(text);
            let bytes = STANDARD.decode(encoded).ok().filter(|bytes| !bytes.is_empty());
            bytes.ok_or_else(|| {
                InvalidValue::new("has an invalid secret", "expected whsec_ and base64, as the sender shows it")
            })
        }
    }
}

/// The scheme that the settings describe.
fn custom(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<Scheme> {
    let header = reader.required(
        section,
        HEADER.name,
        "add the header of the signature, as in header = \"X-Signature\"",
        header_name,
    );
    let algorithm = reader.word(section, ALGORITHM.name, "is unknown", &ALGORITHMS);
    let encoding = reader.word(section, ENCODING.name, "is unknown", &ENCODINGS);
    let prefix = reader.text(section, SIGNATURE_PREFIX.name, element).map(|found| found.value);
    let signed = reader.text_or(section, SIGNED.name, "{body}", |text| {
        scheme::parse(text).map_err(|label| InvalidValue::new("isn't the text of a signature", label))
    });
    let time_header = reader.text(section, TIMESTAMP_HEADER.name, header_name);
    let time_prefix = reader.text(section, TIMESTAMP_PREFIX.name, element);
    let id_header = reader.text(section, ID_HEADER.name, header_name);
    let id_member = reader.text(section, ID_MEMBER.name, parsed::<JsonPointer>("isn't a JSON pointer"));
    let signed = signed?;
    let time = one_of(reader, section, (&TIMESTAMP_HEADER, time_header), (&TIMESTAMP_PREFIX, time_prefix));
    check_placeholder(reader, section, (&signed, &Part::Time, "{timestamp}"), time.is_some(), &TIMESTAMP_HEADER);
    check_placeholder(reader, section, (&signed, &Part::Id, "{id}"), id_header.is_some(), &ID_HEADER);
    Some(Scheme {
        header: Cow::Owned(header?),
        algorithms: algorithm.map_or(&[Algorithm::Sha256][..], |found| found.value),
        encoding: encoding.map_or(Encoding::Hex, |found| found.value),
        separators: &[',', ';', ' '],
        prefix: Cow::Owned(prefix.unwrap_or_default()),
        signed: Cow::Owned(signed),
        time: time
            .map_or(Time::None, |(is_header, text)| if is_header { Time::Header(text) } else { Time::Element(text) }),
        id: match (id_header, id_member) {
            (Some(header), _) => Id::Header(Cow::Owned(header.value)),
            (None, Some(pointer)) => Id::Member(Cow::Owned(pointer.value.as_str().to_owned())),
            (None, None) => Id::Signed,
        },
    })
}

/// The value of the one of two settings that is set, and whether it is the first.
fn one_of(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    first: (&Setting, Option<Located<String>>),
    second: (&Setting, Option<Located<String>>),
) -> Option<(bool, Cow<'static, str>)> {
    match (first.1, second.1) {
        (Some(_), Some(other)) => {
            let names = (section.key_path(first.0.name), section.key_path(second.0.name));
            let title = format!("conflict: `{}` and `{}` are both set", names.0, names.1);
            reader.push(Diagnostic::new(title, other.span, "remove one of them"));
            None
        }
        (Some(found), None) => Some((true, Cow::Owned(found.value))),
        (None, Some(found)) => Some((false, Cow::Owned(found.value))),
        (None, None) => None,
    }
}

/// A placeholder needs its setting; and a header that isn't in the signed text can be changed by anyone.
fn check_placeholder(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    (signed, part, placeholder): (&[Part], &Part, &str),
    is_set: bool,
    setting: &Setting,
) {
    let is_signed = signed.contains(part);
    if is_signed && !is_set {
        reader.missing(section, setting.name, &format!("`signed` has {placeholder}: add the header that it is in"));
    }
    if !is_signed && is_set {
        let title = format!("conflict: `{}` is set, and `signed` has no {placeholder}", section.key_path(setting.name));
        let label =
            format!("add {placeholder} to `signed`, or remove the setting: a header that isn't signed proves nothing");
        reader.push(Diagnostic::new(title, section.span().clone(), label));
    }
}

/// Reports settings that the provider doesn't use.
fn check_unused(reader: &mut SettingsReader<'_>, section: &Section<'_>, provider: Option<&Provider>) {
    let name = provider.map_or("", |provider| provider.name);
    let has_time =
        name == CUSTOM || provider.is_some_and(|known| (known.schemes)().iter().any(|one| one.time != Time::None));
    let of_provider = [
        (&SECRETS, provider.is_some()),
        (&TOLERANCE, has_time),
        (&PUBLIC_URL, name == "twilio"),
        (&VERIFY_TOKEN, name == "meta"),
    ];
    let of_custom = OF_CUSTOM.iter().map(|setting| (setting, name == CUSTOM));
    for (setting, is_used) in of_provider.into_iter().chain(of_custom) {
        if is_used || !reader.is_set(section, setting.name) {
            continue;
        }
        let path = section.key_path(setting.name);
        let title = match provider {
            Some(provider) => format!("unused setting `{path}` with provider = \"{}\"", provider.name),
            None => format!("unused setting `{path}` without `provider`"),
        };
        let span = section.get(setting.name).map_or_else(|| section.span().clone(), |(span, _)| span);
        reader.push(Diagnostic::new(title, span, "remove it, or set the `provider` that it belongs to"));
    }
}

fn not_empty(text: &str) -> Result<String, InvalidValue> {
    if text.is_empty() { Err(InvalidValue::new("is empty", "expected a text")) } else { Ok(text.to_owned()) }
}

fn header_name(text: &str) -> Result<String, InvalidValue> {
    let is_name = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if is_name {
        Ok(text.to_owned())
    } else {
        Err(InvalidValue::new("isn't a header", "expected a name such as X-Signature"))
    }
}

fn element(text: &str) -> Result<String, InvalidValue> {
    let is_whole = !text.contains([',', ';', ' ']);
    let wrong =
        || InvalidValue::new("can't be a prefix", "commas, semicolons and blanks separate elements: remove them");
    if is_whole { Ok(text.to_owned()) } else { Err(wrong()) }
}

fn public_url(text: &str) -> Result<String, InvalidValue> {
    let is_url = (text.starts_with("https://") || text.starts_with("http://")) && !text.contains(['?', '#', ' ']);
    let wrong = || InvalidValue::new("isn't the URL of an intake", "expected https://HOST/PATH, without a query");
    if is_url { Ok(text.to_owned()) } else { Err(wrong()) }
}
