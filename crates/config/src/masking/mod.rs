//! Hides passwords and keys in the texts that diagnostics show.

use std::borrow::Cow;
use std::ops::Range;

use settings::Environment;

mod layout;
mod tables;

/// Placeholders for secrets in hints, such as `redis://USER:PASSWORD@HOST` and `https://hooks.example.org/forebay`.
const PLACEHOLDERS: &[&str] = &["PASSWORD", "forebay"];

/// A text as it may be shown, of the configuration or of a file that it names. Secrets are replaced by as many stars as
/// they have bytes, so every span keeps its place. Secrets are the password in a URL (RFC 3986 §3.2.1), the token in a
/// URL of NATS or after `password=`, and the secret of a webhook. In the configuration these are secrets too: each
/// value of [`layout::secrets`], and the text after the host in each `url` of HTTP.
pub(crate) fn hidden(text: &str, is_configuration: bool) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed(text);
    let secrets = if is_configuration { layout::secrets(text) } else { Vec::new() };
    let secrets =
        secrets.into_iter().chain(parameters(text)).chain(hook_secrets(text)).chain(access::token_ranges(text));
    let is_secret = |range: &Range<usize>| !PLACEHOLDERS.contains(&&text[range.clone()]);
    for secret in secrets.chain(after_hosts(text)).chain(passwords(text)).filter(is_secret) {
        for part in without_references(text, secret) {
            let stars: String = text[part.clone()].chars().map(star).collect();
            shown.to_mut().replace_range(part, &stars);
        }
    }
    shown
}

/// The text of a configuration's file as it may be shown to others.
#[must_use]
pub fn masked(text: &str) -> String {
    hidden(text, true).into_owned()
}

/// The variables of Forebay, each as `NAME=VALUE` as it may be shown to others.
#[must_use]
pub fn masked_variables(environment: &Environment) -> Vec<String> {
    let shown = |name| masked(&format!("{name}={}", environment.raw(name)?)).into();
    environment.own_names().filter_map(shown).collect()
}

/// As many stars as the character has bytes. Lines stay lines.
fn star(character: char) -> &'static str {
    if character == '\n' { "\n" } else { &"****"[..character.len_utf8()] }
}

/// The parts of a secret between references such as `${NAME}`: the name of a variable is no secret.
fn without_references(text: &str, secret: Range<usize>) -> Vec<Range<usize>> {
    let (mut parts, mut start) = (Vec::new(), secret.start);
    for (at, _) in text[secret.clone()].match_indices("${") {
        let reference = secret.start + at;
        let name = &text[reference + "${".len()..secret.end];
        let length = name.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        if length > 0 && name[length..].starts_with('}') {
            parts.push(start..reference);
            start = reference + "${}".len() + length;
        }
    }
    parts.push(start..secret.end);
    parts
}

/// The passwords, and the tokens of NATS, in all that looks like a URL.
fn passwords(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices("://").filter_map(|(scheme, _)| {
        let start = scheme + "://".len();
        let rest = &text[start..];
        let end = rest.find(|c: char| c.is_whitespace() || "\"'".contains(c)).unwrap_or(rest.len());
        let at = rest[..end].rfind('@')?;
        let before = match rest[..at].find(':') {
            Some(colon) => colon + 1,
            None if is_of_nats(&text[..scheme]) => 0,
            None => return None,
        };
        Some(start + before..start + at)
    })
}

/// Whether URLs of a scheme may have a token in place of the user.
fn is_of_nats(before: &str) -> bool {
    ["nats", "tls"].iter().any(|scheme| before.ends_with(scheme))
}

/// The values of `password=`, as in the parameters of a URL.
fn parameters(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices("password=").map(|(at, name)| {
        let start = at + name.len();
        let rest = &text[start..];
        start..start + rest.find(|c: char| c.is_whitespace() || "&\"'".contains(c)).unwrap_or(rest.len())
    })
}

/// The secrets of webhooks, after their prefix.
fn hook_secrets(text: &str) -> impl Iterator<Item = Range<usize>> {
    const MARK: &str = "whsec_";
    text.match_indices(MARK).map(|(at, _)| {
        let start = at + MARK.len();
        let rest = &text[start..];
        start..start + rest.find(|c: char| c.is_whitespace() || ",\"'".contains(c)).unwrap_or(rest.len())
    })
}

/// The text after the host in each value of `url =`, or of a variable whose name ends with it, unless it is the URL of
/// a database. Receivers of webhooks, and others, have their tokens in the path or the query. A value that doesn't
/// begin like a URL, which is the mistake, is hidden from its first slash on.
fn after_hosts(text: &str) -> impl Iterator<Item = Range<usize>> {
    let names = text.char_indices().filter(move |(at, _)| is_url_name(text, *at));
    let values = names.filter_map(move |(at, _)| {
        let value = text[at + URL_NAME.len()..].trim_start_matches(['"', '\'', ' ', '\t']).strip_prefix('=')?;
        let start = text.len() - value.len();
        Some(start..start + length_of(value))
    });
    values.flat_map(move |value| {
        let mut start = value.start;
        let parts = text[value].split(|c: char| c.is_ascii_whitespace() || ",\"'".contains(c)).map(move |part| {
            let place = start..start + part.len();
            start = place.end + 1;
            place
        });
        parts.filter_map(move |part| {
            let behind = behind_host(&text[part.clone()])?;
            Some(part.start + behind..part.end)
        })
    })
}

/// How long a value is: to the end of its line, or of its list.
fn length_of(value: &str) -> usize {
    let is_list = value.trim_start().starts_with('[');
    let (mut quote, mut end) = (None, value.len());
    for (at, character) in value.char_indices() {
        match (quote, character) {
            (None, ']') if is_list => return at,
            (_, '\n') if !is_list => {
                end = at;
                break;
            }
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            _ => {}
        }
    }
    end
}

/// The name of a key, and the end of a variable's.
const URL_NAME: &str = "url";

/// Whether the name of a key or of a variable ends here with [`URL_NAME`].
fn is_url_name(text: &str, at: usize) -> bool {
    let is_name = text.get(at..at + URL_NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(URL_NAME));
    is_name && !text[..at].ends_with(|before: char| before.is_ascii_alphanumeric())
}

/// The offset in a URL of HTTP, or in a wrong one, of the text after the host.
fn behind_host(url: &str) -> Option<usize> {
    let host = match url.split_once("://") {
        Some((scheme, _)) if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) => return None,
        Some((scheme, _)) => scheme.len() + "://".len(),
        None => 0,
    };
    let behind = url[host..].find(['/', '?', '#'])? + host + 1;
    (behind < url.len()).then_some(behind)
}

#[cfg(test)]
mod tests {
    use super::hidden;

    #[test]
    fn only_passwords_are_hidden_and_nothing_moves() {
        for (text, shown) in [
            ("url = \"postgres://ann:s3cr\u{e9}t@db:5432/x\"\n", "url = \"postgres://ann:*******@db:5432/x\"\n"),
            ("a://u:p@h b://u:a@b@h", "a://u:*@h b://u:***@h"),
            ("a://u:p/@h/x", "a://u:**@h/x"),
            ("http://h:80/x @ y", "http://h:80/x @ y"),
            ("a://u@h:1", "a://u@h:1"),
            ("nats://t0ken@h:1,i", "nats://*****@h:1,i"),
            ("url = \"tls://ann:s3cret@h\"", "url = \"tls://ann:******@h\""),
            ("://", "://"),
            ("p://u@h/d?password=s3cret&x=1", "p://u@h/d?password=******&x=1"),
            ("# whsec_TOPS", "# whsec_****"),
            ("url = \"https://h.example:1/T/OPS?x\" # a/b", "url = \"https://h.example:1/*******\" # a/*"),
            ("url = 'https:/h/TOPS'\nx = 'a/b'", "url = 'https:/******'\nx = 'a/b'"),
            ("\"url\" = \"HTTP://h?TOPS\"", "\"url\" = \"HTTP://h?****\""),
            ("FOREBAY_SINKS_HOOK_URL=https://h/TOPS", "FOREBAY_SINKS_HOOK_URL=https://h/****"),
            ("url = [\"http://a/b\",\n 'http://c/d']", "url = [\"http://a/*\",\n 'http://c/*']"),
            ("url = \"redis://h/0\"\nurl = \"http://h/\"", "url = \"redis://h/0\"\nurl = \"http://h/\""),
            ("url = ['http://[::1]/a']\n[x/y]", "url = ['http://[::1]/*']\n[x/y]"),
            ("curl = \"http://a/b\"", "curl = \"http://a/b\""),
        ] {
            assert_eq!(hidden(text, false), shown);
        }
        for (text, shown) in [
            ("[sinks.a]\nkind = \"redis\"\nkey = \"{type}\"", "[sinks.a]\nkind = \"redis\"\nkey = \"{type}\""),
            ("api_key = \"TOPS\"\npath = 'a'", "api_key = \"****\"\npath = 'a'"),
            ("api_key = \"${KEY}\"", "api_key = \"${KEY}\""),
            ("api_key = \"TOPS${KEY}$${K}S${\"", "api_key = \"****${KEY}*${K}***\""),
        ] {
            let within = |text: &str| format!("[sinks.es]\n{text}");
            assert_eq!(hidden(&within(text), true), within(shown));
        }
    }

    /// A configuration with a secret in each wrong shape and place: no message shows the secret.
    #[test]
    fn secret_is_hidden_in_every_place() {
        let values = [
            "\"TOPS\"",
            "'TOPS'",
            "TOPS",
            "[\"a: b\", \"TOPS\"]",
            "[\n  \"TOPS\",\n]",
            "{ a = \"TOPS\" }",
            "[[\"a\", \"TOPS\"], { a = [\"TOPS\"] }]",
            "\"\"\"\nTOPS\n\"\"\"",
            "'''TOPS'''",
            "\"TOPS",
            "\"\"\"TOPS",
            "[\"a\", \"TOPS\"",
            "\"a\" \"TOPS\"",
            "a # TOPS",
            "\n\"TOPS\"",
            "\"\\\"TOPS\"",
        ];
        let mut texts = Vec::new();
        for value in values {
            texts.extend(with_keys(value));
            texts.push(format!("[sinks.es.headers]\nX-Name = {value}"));
            texts.push(format!("[sinks.es]\nconflict = {{ token = {value} }}"));
            texts.push(format!("[sinks]\nes = {value}"));
            texts.push(format!("[types.a]\ntransform = {value}"));
            texts.push(format!("password = {value}"));
            texts.push(format!("[gateway]\nauth_token = {value}"));
            texts.extend(
                UNKNOWN_KEYS
                    .iter()
                    .flat_map(|key| TABLES.iter().map(move |table| format!("[{table}]\n{key} = {value}\n[log]"))),
            );
            // On the line of the header, which is no TOML, and below a table of tables whose name is missing.
            texts.extend(TABLES.map(|table| format!("[{table}] password = {value}\n[log]")));
            texts
                .extend(["upstreams", "types", "types.a.aggregate"].map(|table| format!("[{table}]\ntoken = {value}")));
            texts.push(format!("upstreams = {{ token = {value} }}"));
            // Line ends of another system.
            texts.push(format!("[gateway]\rtokn = {}\r[log]", value.replace('\n', "\r")));
        }
        texts.extend(OTHER_SHAPES.map(str::to_owned));
        for text in texts {
            let shown = hidden(&text, true);
            assert!(!shown.contains("TOPS"), "{text}\n{shown}");
            assert_eq!(
                (shown.len(), shown.lines().count()),
                (text.len(), text.lines().count()),
                "nothing moves: {text}"
            );
        }
    }

    /// Tables whose settings are known, and some that aren't.
    const TABLES: [&str; 18] = [
        "gateway",
        "gateway.tls",
        "admin",
        "admin.tls",
        "journal",
        "log",
        "writer",
        "writer.etcd",
        "bus",
        "bus.events",
        "upstreams.b",
        "upstreams.b.etcd",
        "types.a",
        "types.a.aggregate.n",
        "tables.t",
        "sinks.es",
        "sink.es",
        "intakes.h",
    ];
    /// Keys that no table has.
    const UNKNOWN_KEYS: [&str; 7] = ["tokn", "Token", "bearer", "auth", "dsn", "creds", "\"pass word\""];

    fn with_keys(value: &str) -> Vec<String> {
        let keys = ["api_key", "\"api_key\"", "key", "secret_key", "secrets", "headers", "kee", "password", "API_KEY"];
        let all = keys.into_iter().flat_map(|key| {
            [
                format!("[sinks.es]\nkind = \"x\"\n{key} = {value}\nindex = \"a\""),
                format!("[sink.es]\n{key} = {value}"),
                format!("[sinks.pg.shards.a]\n{key} = {value}"),
                format!("[[sinks.es]]\n{key} = {value}"),
                format!("[intakes.h]\nkind = \"webhook\"\n{key} = {value}"),
                format!("intakes.h.{key} = {value}"),
                format!("[sinks.es]\nroutes = [\"a\"\n{key} = {value}"),
                format!("sinks.es.{key} = {value}"),
                format!("sinks = {{ es = {{ kind = \"x\", {key} = {value} }} }}"),
                format!("[sinks]\nes = {{ {key} = {value} }}"),
                format!("[types.a]\ntransform = [{{ hash = \"/c\", {key} = {value} }}]"),
                format!("[types.a]\ntransform = [\n{{ hash = \"/c\" {key} = {value} }}]"),
                format!("[[types.a.transform]]\nhash = \"/c\"\n{key} = {value}"),
                format!("types = {{ a = {{ transform = {{ hash = {{ {key} = {value} }} }} }} }}"),
            ]
        });
        all.collect()
    }

    const OTHER_SHAPES: [&str; 42] = [
        "[bus]\nurl = \"nats://TOPS@h\"",
        "[bus]\nurl = \"nats://a:TOPS@h\"",
        "[bus]\nurl = \"ann:TOPS@h\"",
        "[[bridge]]\ntokn = \"TOPS\"",
        "FOREBAY_BUS_URL=nats://TOPS@h",
        "FOREBAY_BUS_URL=ann:TOPS@h",
        "[gateway]\nTOPS",
        "[gateway]\nlisten = \"1\" # TOPS",
        "[upstreams.b]\n# tokn = \"TOPS\"",
        "[upstreams.b.etcd]\npasswrd = \"TOPS\"",
        "upstreams.b.etcd.passwrd = \"TOPS\"",
        "upstreams = { b = { etcd = { passwrd = \"TOPS\" } } }",
        "[gateway]\nlisten = { tokn = \"TOPS\" }",
        "[types.a]\nroutes = [{ to = \"s\", hedr = \"TOPS\" }]",
        "[sinks.pg.columns]\na = { pointer = \"/a\", dsn = \"TOPS\" }",
        "FOREBAY_UPSTREAMS_BACK_TOKN=TOPS",
        "FOREBAY_UPSTREAMS_BACK_KEY=TOPS",
        "FOREBAY_GATEWAY_BEARER=TOPS",
        "FOREBAY_BEARER=TOPS",
        "FOREBAY_TYPES_A_PASS=TOPS",
        "[writer.etcd]\npassword = \"TOPS\"",
        "FOREBAY_WRITER_ETCD_PASSWORD=TOPS",
        "FOREBAY_UPSTREAMS_BACK_TOKEN=TOPS",
        "[sinks.es]\napi_key: \"TOPS\"",
        "[sinks.es]\napi_key:TOPS",
        "[sinks.es]\napi_key \"TOPS\"",
        "[sinks.es]\n\"TOPS\"",
        "[sinks.es]\n# api_key = \"TOPS\"",
        "[sinks.es]\nheaders = [\"Authorization Bearer TOPS\", \"X-Key: TOPS\"]",
        "[sinks.es]\nurl = \"ann:TOPS@db/x\"",
        "[sinks.es]\nurl = \"postgres://ann:a TOPS@db/x\"",
        "[sinks.es]\nurl = \"redis://:TOPS\"",
        "[sinks.es]\nurl = \"nats://TOPS@h\"",
        "[sinks.es]\nurl = [\"nats://TOPS@h\", \"nats://a:TOPS@h\"]",
        "[sinks.es]\nsentinels = [\"ann:TOPS@h:1\"]",
        "[gateway.tls]\nkey = \"-----BEGIN PRIVATE KEY----- TOPS\"",
        "FOREBAY_INTAKES_H_SECRET=TOPS",
        "FOREBAY_SINKS_ES_API_KEY=TOPS",
        "FOREBAY_SINKS_HOOK_HEADERS=X-Key TOPS,Y: TOPS",
        "FOREBAY_SINKS_S_KEY=\nTOPS",
        "FOREBAY_SINKS_PG_URL=ann:TOPS@db",
        "FOREBAY_SINKS_PG_URL=postgres://ann:a TOPS@db",
    ];

    #[test]
    fn non_secret_value_is_shown() {
        for text in [
            "[gateway]\nlisten = \"1\"\n[gateway.tls]\nkey = \"server.key\"\n",
            "[types.access]\nschema = \"a.json\"\nrefused_to = \"b\"\ntransform = [{ lower = \"/a\" }, { set = \"/b\", value = { c = 1 } }]",
            "[sinks.local]\nkind = \"sqlite\"\npath = \"a.db\"\nmax_backlog = 5\n[sinks.b]\nkind = \"postgres\"\n[sinks.b.columns]\nname = \"/name\"",
            "[sinks.pg]\nurl = \"postgres://ann@db:5432/x\"\n[sinks.pg.shards.a]\nvalues = [\"a\", 1]\nurl = \"postgres://b\"",
            "[tables.a]\npath = \"a.csv\"\nkey = \"code\"",
            "[intakes.es]\nkind = \"elasticsearch\"\nlisten = \"127.0.0.1:9200\"\ndedupe = \"none\"\ntype = \"logs\"",
            "FOREBAY_INTAKES_ES_LISTEN=127.0.0.1:9200",
            "FOREBAY_SINKS_LOCAL_PATH=a.db",
            "FOREBAY_SINKS_PG_URL=postgres://db/x",
            "FOREBAY_LISTEN=x",
            "--listen x",
        ] {
            assert_eq!(hidden(text, true), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics_and_nothing_moves(
            text in "([a-z\u{e9}]|sinks|key|url|://|\\$\\{A\\}|@|[\\[\\]{}=\"'#,.:\\\\ ]|\n|\"\"\"){0,40}"
        ) {
            let shown = hidden(&text, true);
            proptest::prop_assert_eq!(shown.len(), text.len());
            proptest::prop_assert_eq!(shown.matches('\n').count(), text.matches('\n').count());
        }
    }
}
