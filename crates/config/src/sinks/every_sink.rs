//! The settings of every sink.

use settings::{Kind, Setting, Unset};

/// The settings of every sink.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting::new("kind", Kind::Text("kind of sink"), "the kind of store: `sqlite`, `directory`, `elasticsearch`, `nats`, `postgres`, `redis`, `swift`, `s3`, `webhook`, `writer` or `null`").required().example("\"sqlite\""),
    Setting::choice(
        "from",
        &["end", "oldest", "latest", "earliest"],
        "where a new [route](../../concepts/glossary.md#route) begins: `end` (or `latest`) with the next event, `oldest` (or `earliest`) with \
         the oldest available one ([new routes](sinks.md#backlog-and-new-routes))",
    )
    .or(Unset::Text("end")),
    MAX_BACKLOG,
    MAX_DEAD_LETTERS,
];
/// The limit on its backlog.
pub(super) const MAX_BACKLOG: Setting = Setting::size(
    "max_backlog",
    (0, u64::MAX),
    "the approximate limit on undelivered journal bytes. Above it, types with a route to the sink are rejected with 503 `backlog_full` \
     ([backlog](sinks.md#backlog-and-new-routes))",
)
.or(Unset::Described("half of the disk"))
.example("\"10GiB\"");
/// The limit on its dead letters.
pub(super) const MAX_DEAD_LETTERS: Setting = Setting::integer(
    "max_dead_letters",
    (1, limits::DEAD_LETTERS_SET_MAX as i64),
    "the limit on [dead letters](../../guides/dead-letters.md#limit) of the sink. At the limit, delivery pauses until you replay or drop some. \
     The default is lower if [memory](../../concepts/resources.md#memory) is limited",
)
.or(Unset::Described("1000000"))
.example("1000000");
