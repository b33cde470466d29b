//! A sink in a line, as `forebay check` and the console show it.

use std::fmt;

use ::objects::ObjectRules;
use sink_directory::DirectoryConfig;
use sink_elasticsearch::Target;
use sink_remote::{RemoteConfig, RemoteObjectsConfig, Writers};
use sink_s3::S3Config;
use sink_swift::SwiftConfig;

use crate::sinks::sink_config::SinkConfig;

impl fmt::Display for SinkConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Sqlite(config) => write!(f, "sqlite {}, table {}", config.path.display(), config.table),
            Self::Directory(DirectoryConfig { path, rules }) => {
                write!(f, "directory {}, codec {}, files of at most {}", path.display(), rules.codec, Size(rules))
            }
            Self::Elasticsearch(config) => {
                let what = if config.target == Target::DataStream { "data stream" } else { "index" };
                write!(f, "elasticsearch {}, {what} {}", config.nodes, config.index)
            }
            Self::Postgres(config) => write!(f, "postgres {}, table {}", config.server, config.table),
            Self::Nats(config) => {
                write!(f, "nats {}, stream {}, subject {}", config.servers, config.stream, config.subject)
            }
            Self::Redis(config) => write!(f, "redis {}, {} {}", config.place(), config.structure, config.key),
            Self::Swift(SwiftConfig { auth, container, rules, .. }) => {
                write!(f, "swift {}, container {container}, codec {}, ", auth.url(), rules.codec)?;
                write!(f, "objects{} of at most {}", named(&rules.prefix), Size(rules))
            }
            Self::S3(S3Config { url, bucket, rules, .. }) => {
                write!(f, "s3 {url}, bucket {bucket}, codec {}, ", rules.codec)?;
                write!(f, "objects{} of at most {}", named(&rules.prefix), Size(rules))
            }
            Self::Webhook(config) => write!(f, "webhook {}", config.url),
            Self::Remote(config) => writer(f, config),
            Self::RemoteObjects(RemoteObjectsConfig { remote, rules }) => {
                writer(f, remote)?;
                write!(f, ", codec {}, objects{} of at most {}", rules.codec, named(&rules.prefix), Size(rules))
            }
        }
    }
}

fn writer(f: &mut fmt::Formatter<'_>, config: &RemoteConfig) -> fmt::Result {
    let (before, by) = match config.upstream.config().writers {
        Writers::Listed(_) | Writers::Named(_) => ("", ""),
        Writers::Dns(_) => ("", " by DNS"),
        Writers::Etcd { .. } => ("in etcd ", ""),
    };
    write!(f, "writer {before}{}{by}, sink {}, store {}", config.urls().join(" "), config.sink, config.store.as_str())
}

/// When an object ends, and what isn't in it.
struct Size<'a>(&'a ObjectRules);

impl fmt::Display for Size<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ObjectRules { line, bytes_max, records_max, age_max, apart, .. } = self.0;
        write!(f, "{bytes_max} bytes, {records_max} events, {}", humantime::format_duration(*age_max))?;
        f.write_str(if *line == ::objects::Line::Envelope { ", in envelopes" } else { "" })?;
        apart.as_ref().map_or(Ok(()), |apart| write!(f, ", {} apart", apart.data))
    }
}

/// What names begin with, if with anything.
fn named(prefix: &::objects::Prefix) -> String {
    if *prefix == ::objects::Prefix::NONE { String::new() } else { format!(" {prefix}") }
}
