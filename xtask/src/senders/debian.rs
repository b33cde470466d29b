//! Syslog daemons of Debian. Their packages conflict with each other, so they are unpacked and not installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use testkit::ports::free_address;

use super::feed::Feed;
use super::installed::{ensure, folder, text};
use super::sender::{ALL, Sender, Start, Started};
use super::settings::{Extra, Place};
use crate::workspace::run;

/// The packages. The release of each program is pinned, and Debian's revision isn't: security updates replace it.
const PACKAGES: &[&str] = &[
    "rsyslog=8.2302.0*",
    "rsyslog-elasticsearch=8.2302.0*",
    "syslog-ng-core=3.38.1*",
    "syslog-ng-mod-http=3.38.1*",
    "syslog-ng-scl=3.38.1*",
    "libestr0",
    "libfastjson4",
    "libivykis0",
    "liblognorm5",
    "libnet1",
    "libpcre3",
    "libwrap0",
];

/// The daemons. rsyslog resends the records of a failed batch one by one, so the digest of the body doesn't identify a retry: it gives
/// ids to its documents, or their type has ids by content.
pub(super) const SENDERS: &[Sender] = &[
    sender("rsyslog-ids", Extra::Nothing, |start| rsyslog(start, RSYSLOG_IDS)),
    sender("rsyslog-content-ids", Extra::ContentIds, |start| rsyslog(start, "")),
    sender("syslog-ng", Extra::Nothing, syslog_ng),
];

/// A new id for each document.
const RSYSLOG_IDS: &str = "bulkid=\"id\" dynbulkid=\"on\" writeoperation=\"create\"";

const fn sender(name: &'static str, extra: Extra, start: fn(&Start<'_>) -> Result<Started>) -> Sender {
    Sender { name, place: Place::Root("es"), extra, least: ALL, start }
}

fn rsyslog(start: &Start<'_>, ids: &str) -> Result<Started> {
    let listen = free_address();
    let (host, port) = start.url.trim_start_matches("http://").split_once(':').context("a URL with a port")?;
    let text = text("rsyslog.conf")?
        .replace("FOLDER", &start.folder.to_string_lossy())
        .replace("HOST", host)
        .replace("PORT", port)
        .replace("IDS", ids)
        .replace("LISTEN", &listen.port().to_string());
    let config = start.write("rsyslog.conf", &text)?;
    let unpacked = folder("debian")?;
    let mut command = daemon("rsyslogd")?;
    command.args(["-n", "-f"]).arg(config).arg("-i").arg(start.folder.join("rsyslog.pid"));
    command.arg("-M").arg(libraries(&unpacked).join("rsyslog"));
    Ok(Started { command, feed: Some(Feed::Syslog(listen)) })
}

fn syslog_ng(start: &Start<'_>) -> Result<Started> {
    let listen = free_address();
    let unpacked = folder("debian")?;
    let data = unpacked.join("usr").join("share").join("syslog-ng");
    let text = text("syslog-ng.conf")?
        .replace("DATA", &data.to_string_lossy())
        .replace("LISTEN", &listen.port().to_string())
        .replace("URL", start.url);
    let config = start.write("syslog-ng.conf", &text)?;
    let of_folder = |name: &str| start.folder.join(name);
    let mut command = daemon("syslog-ng")?;
    command.args(["--foreground", "--no-caps", "--stderr", "--cfgfile"]).arg(config);
    command.arg("--module-path").arg(unpacked.join("usr").join("lib").join("syslog-ng").join("3.38"));
    command.arg("--persist-file").arg(of_folder("persist")).arg("--pidfile").arg(of_folder("syslog-ng.pid"));
    command.arg("--control").arg(of_folder("control"));
    Ok(Started { command, feed: Some(Feed::Syslog(listen)) })
}

/// A daemon with its libraries.
fn daemon(name: &str) -> Result<Command> {
    let unpacked = folder("debian")?;
    let usr = unpacked.join("usr").join("lib");
    let of_machine = libraries(&unpacked);
    let machine = of_machine.file_name().unwrap_or_default().to_owned();
    let folders = [usr.join("syslog-ng"), of_machine, unpacked.join("lib").join(machine)];
    let mut command = Command::new(unpacked.join("usr").join("sbin").join(name));
    command.env("LD_LIBRARY_PATH", std::env::join_paths(folders)?);
    Ok(command)
}

fn libraries(unpacked: &Path) -> PathBuf {
    unpacked.join("usr").join("lib").join(format!("{}-linux-gnu", std::env::consts::ARCH))
}

/// Downloads and unpacks the packages.
pub(super) fn install() -> Result<()> {
    ensure("debian", &PACKAGES.join("\n"), |folder| {
        // apt writes into the folder of its process, and `run` sets that to the workspace's.
        let script = "cd \"$0\" && apt-get --quiet download \"$@\" && for file in *.deb; do dpkg-deb --extract \"$file\" . || exit 1; done";
        run(Command::new("sh").args(["-c", script]).arg(folder).args(PACKAGES)).context("unpacking packages of Debian")
    })
    .map(drop)
}
