//! Options of libpq's URLs that Forebay doesn't support, and what to use instead.

const CLIENT_CERTIFICATE: &str = "isn't supported: Forebay logs in with a password. Remove it";
const REVOCATION: &str = "isn't supported: Forebay reads no revocation lists. Remove it";
const GSSAPI: &str = "isn't supported: Forebay doesn't use GSSAPI. Remove it";
const TLS_VERSION: &str = "isn't supported: Forebay speaks TLS 1.2 or 1.3. Remove it";
const ELSEWHERE: &str = "isn't supported: write host, user and password into `url`, as url = \"${PG_URL}\"";
const NEEDLESS: &str = "isn't supported. Remove it";

/// Each option with the reason and the setting to use instead.
const UNSUPPORTED: [(&str, &str); 29] = [
    (
        "sslrootcert",
        "isn't supported: set `ca` of the sink to that file. Without `ca`, Forebay trusts the machine's authorities",
    ),
    ("sslcert", CLIENT_CERTIFICATE),
    ("sslkey", CLIENT_CERTIFICATE),
    ("sslpassword", CLIENT_CERTIFICATE),
    ("sslcertmode", CLIENT_CERTIFICATE),
    ("sslcrl", REVOCATION),
    ("sslcrldir", REVOCATION),
    ("sslsni", NEEDLESS),
    ("sslcompression", NEEDLESS),
    ("requiressl", "isn't supported: write sslmode=require"),
    ("ssl_min_protocol_version", TLS_VERSION),
    ("ssl_max_protocol_version", TLS_VERSION),
    ("gssencmode", GSSAPI),
    ("gsslib", GSSAPI),
    ("gssdelegation", GSSAPI),
    ("krbsrvname", GSSAPI),
    ("passfile", ELSEWHERE),
    ("service", ELSEWHERE),
    ("servicefile", ELSEWHERE),
    ("keepalives_count", "isn't supported: write keepalives_retries"),
    ("fallback_application_name", "isn't supported: write application_name"),
    ("client_encoding", "isn't supported: Forebay always uses UTF-8. Remove it"),
    ("replication", NEEDLESS),
    ("requirepeer", NEEDLESS),
    ("require_auth", NEEDLESS),
    ("min_protocol_version", NEEDLESS),
    ("max_protocol_version", NEEDLESS),
    ("pool_timeout", "isn't PostgreSQL's: set `timeout` or `max_connections` of the sink"),
    ("connection_limit", "isn't PostgreSQL's: set `max_connections` of the sink"),
];
const SESSION: &str = "must be read-write: Forebay always uses the server that accepts writes. Remove it";
const TLS_MODE: &str =
    "must be disable, prefer, require, verify-ca or verify-full. Certificates are always verified, by `ca` of the sink";
const BINDING: &str = "must be disable, prefer or require";

/// The first option of a URL that is unsupported or has an unsupported value.
pub(super) fn unsupported(url: &str) -> Option<(&'static str, &'static str)> {
    // A password may contain a question mark.
    let after_password = url.split_once('@').map_or(url, |(_, rest)| rest);
    let (_, options) = after_password.split_once('?')?;
    options.split('&').find_map(|option| {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match name {
            "target_session_attrs" if !["any", "read-write"].contains(&value) => {
                Some(("target_session_attrs", SESSION))
            }
            "sslmode" if !["disable", "prefer", "require", "verify-ca", "verify-full"].contains(&value) => {
                Some(("sslmode", TLS_MODE))
            }
            "channel_binding" if !["disable", "prefer", "require"].contains(&value) => {
                Some(("channel_binding", BINDING))
            }
            _ => UNSUPPORTED.iter().find(|(known, _)| *known == name).copied(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InvalidPostgresUrl, PostgresServers};

    fn error(options: &str) -> String {
        let url = format!("postgres://u:s3cr?t@h/d?{options}");
        let text = url.parse::<PostgresServers>().map_or_else(|error| error.to_string(), |_| String::new());
        assert!(!text.contains("s3cr"), "{text}");
        text
    }

    #[test]
    fn unsupported_option_names_its_replacement() {
        for (name, _) in UNSUPPORTED {
            assert!(error(&format!("sslmode=require&{name}=/x")).contains(&format!("option `{name}` isn't")), "{name}");
        }
        assert!(error("sslrootcert=/etc/ca.pem").contains("set `ca` of the sink"));
        assert!(error("target_session_attrs=standby").contains("the server that accepts writes"));
        assert!(error("sslmode=allow").contains("verify-full"));
        assert!(error("channel_binding=yes").contains("must be disable, prefer or require"));
        assert_eq!(error("wrong=1"), "unknown option `wrong`");
        let url = "postgres://u@h/d?sslmode=disable&channel_binding=require".parse::<PostgresServers>();
        assert_eq!(url, Err(InvalidPostgresUrl::BindingWithoutTls));
        for good in
            ["sslmode=verify-full&channel_binding=require", "target_session_attrs=read-write", "sslmode=verify-ca"]
        {
            assert_eq!(error(good), "");
        }
    }
}
