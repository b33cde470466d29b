//! The command lines of `forebay try` and `forebay test`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

use super::Common;

/// `forebay try`.
#[derive(Clone, Debug, Args)]
pub struct TryFlags {
    /// The event's type; without it, or with `-`, the configuration finds it
    #[arg(value_name = "TYPE")]
    pub event_type: Option<String>,
    /// The file with its payload; `-` is the standard input
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// The configuration.
    #[command(flatten)]
    pub common: Common,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// The client's address, for steps that need it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub client: IpAddr,
    /// The source of the event, for steps that need it
    #[arg(long, value_name = "NAME", default_value = "")]
    pub source: String,
    /// When it was received [default: now]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub received: Option<i64>,
    /// The Idempotency-Key of its request
    #[arg(long, value_name = "KEY", default_value = "")]
    pub key: String,
    /// A header of its request, as in 'X-Request-Id: 7'; can be repeated
    #[arg(long, value_name = "HEADER", value_parser = header)]
    pub header: Vec<(String, String)>,
}

/// `forebay test`.
#[derive(Clone, Debug, Args)]
pub struct TestFlags {
    /// The folder with the cases, in subfolders of any depth
    #[arg(default_value = "cases")]
    pub folder: PathBuf,
    /// The configuration.
    #[command(flatten)]
    pub common: Common,
    /// Write the output as the expected output
    #[arg(long)]
    pub update: bool,
}

fn time(text: &str) -> Result<i64, String> {
    text::rfc3339::parse(text)
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("a header is a name, a colon and a value")?;
    Ok((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
}
