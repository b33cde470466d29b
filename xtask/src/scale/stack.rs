//! The Swarm stack of `deploy/swarm`, with stand-ins for the images of a registry: programs of this machine with their libraries.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::docker::{Docker, Image};
use crate::http::{self, Connection};
use crate::wait::until;
use crate::{image, workspace};
use testkit::ports::free_port;

const NAME: &str = "forebay";
/// The target image of the rolling update: the same image with another name.
pub(super) const NEXT: &str = "forebay:next";
const LIMIT: Duration = Duration::from_secs(120);
const POSTGRES: &str = "/usr/lib/postgresql/15";
/// The start script of the stand-in for the official image.
const POSTGRES_START: &str = r#"#!/bin/sh
set -e
data=/var/lib/postgresql/data
programs=/usr/lib/postgresql/15/bin
if [ "$(id -u)" = 0 ]; then chown 999:999 $data; exec setpriv --reuid=999 --regid=999 --clear-groups "$0"; fi
if [ ! -s $data/PG_VERSION ]; then
    $programs/initdb --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" --auth=scram-sha-256 --auth-local=trust \
        --encoding=UTF8 --locale=C -D $data
    echo "host all all all scram-sha-256" >> $data/pg_hba.conf
    echo "create database $POSTGRES_DB" | $programs/postgres --single -D $data postgres
fi
exec $programs/postgres -D $data -c "listen_addresses=*" -c unix_socket_directories=/tmp
"#;
/// A type whose events are delivered and discarded, for rates.
const SPEED: &str = "\n[types.speed]\nroutes = [\"none\"]\n\n[sinks.none]\nkind = \"null\"\n";

/// A deployed stack. It is removed with its daemon when the value is dropped.
pub(super) struct Stack {
    docker: Docker,
    folder: PathBuf,
}

impl Stack {
    /// Deploys the stack with one gateway, and waits until that gateway accepts events.
    pub(super) fn deploy(binary: &Path, folder: &Path) -> Result<Self> {
        let docker = Docker::start()?;
        let tag = image::default_tag();
        image::build(binary, &tag, &mut docker.command())?;
        docker.run(["tag", &tag, NEXT])?;
        haproxy(&docker)?;
        postgres(&docker)?;
        docker.run(["swarm", "init", "--advertise-addr", "127.0.0.1"])?;
        secrets(&docker, binary, folder)?;
        let stack = Self { docker, folder: folder.join("deploy") };
        stack.write_files()?;
        let mut deploy = stack.docker.command();
        deploy.env("FOREBAY_VERSION", env!("CARGO_PKG_VERSION"));
        deploy.args(["stack", "deploy", "--compose-file"]).arg(stack.folder.join("swarm").join("stack.yaml")).arg(NAME);
        workspace::captured(&mut deploy)?;
        // No route sends events to NATS.
        stack.docker.run(["service", "scale", "--detach", "forebay_nats=0"])?;
        stack.scale(1)?;
        Ok(stack)
    }

    /// Copies the project's files without reserved processors, without the fixed port and with shorter pauses between updates, for one small
    /// machine.
    fn write_files(&self) -> Result<()> {
        workspace::captured(Command::new("cp").arg("-r").arg(workspace::root()?.join("deploy")).arg(&self.folder))?;
        let path = self.folder.join("swarm").join("stack.yaml");
        let text = fs::read_to_string(&path)?;
        let is_kept = |line: &&str| !line.trim_start().starts_with("reservations:");
        let text: String = text.lines().filter(is_kept).flat_map(|line| [line, "\n"]).collect();
        let text = text.replace("published: 8080", &format!("published: {}", free_port()));
        let text = text.replace("delay: 10s", "delay: 1s").replace("monitor: 30s", "monitor: 5s");
        fs::write(&path, text.replace("replicas: 2", "replicas: 1"))?;
        let path = self.folder.join("compose").join("gateway.toml");
        let text = fs::read_to_string(&path)?;
        // A sink whose store doesn't run would keep all events in the journals. What follows are other such sinks, as comments.
        let (text, _) = text.split_once("[sinks.bus]").context("gateway.toml has the sink bus")?;
        let text = text.replace("\"warehouse\", \"bus\"", "\"warehouse\"") + SPEED;
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
    }

    /// Scales to this number of gateways, and waits until all run and HAProxy answers.
    pub(super) fn scale(&self, gateways: usize) -> Result<()> {
        self.docker.run(["service", "scale", "--detach", &format!("forebay_gateway={gateways}")])?;
        self.wait("all gateways run and no other", || Ok(self.running("gateway", gateways)? && self.takes_events()))
    }

    /// Rolls the gateways to the other image.
    pub(super) fn roll(&self) -> Result<()> {
        self.docker.run(["service", "update", "--detach", "--no-resolve-image", "--image", NEXT, "forebay_gateway"])?;
        let state =
            || self.docker.run(["service", "inspect", "--format", "{{.UpdateStatus.State}}", "forebay_gateway"]);
        self.wait("the update is complete", || match state()?.as_str() {
            "completed" => Ok(true),
            state @ ("paused" | "rollback_started" | "rollback_completed" | "rollback_paused") => {
                bail!("the update: {state}")
            }
            _ => Ok(false),
        })
    }

    /// HAProxy's address on the Swarm's outgoing bridge, without Docker's userland proxy.
    pub(super) fn address(&self) -> Result<SocketAddr> {
        let format = "{{(index .IPAM.Config 0).Gateway}}";
        let bridge = self.docker.run(["network", "inspect", "--format", format, "docker_gwbridge"])?;
        let bridge: Ipv4Addr = bridge.parse().with_context(|| format!("Docker names the bridge {bridge}"))?;
        let listed = workspace::captured(self.inside("haproxy")?.args(["hostname", "--all-ip-addresses"]))?;
        let mut addresses = listed.split_whitespace().filter_map(|text| text.parse::<Ipv4Addr>().ok());
        let is_on_bridge = |address: &Ipv4Addr| address.octets()[..2] == bridge.octets()[..2];
        let address = addresses
            .find(is_on_bridge)
            .with_context(|| format!("HAProxy has {listed}, none in the network of {bridge}"))?;
        Ok(SocketAddr::from((address, 8080)))
    }

    /// Runs a statement with `psql`. Returns its output.
    pub(super) fn sql(&self, sql: &str) -> Result<String> {
        let mut psql = self.inside("postgres")?;
        psql.args(["psql", "-XAt", "-h", "127.0.0.1", "-U", "forebay", "-c", sql, "forebay"]);
        workspace::captured(psql.env("PGPASSWORD", "password"))
    }

    /// A program of this machine in the network of a service.
    fn inside(&self, service: &str) -> Result<Command> {
        let pid = self.docker.run(["inspect", "--format", "{{.State.Pid}}", &self.container(service)?])?;
        let mut command = Command::new("nsenter");
        command.args(["--target", &pid, "--net"]);
        Ok(command)
    }

    /// The number of gateways' volumes.
    pub(super) fn volumes(&self) -> Result<usize> {
        Ok(self.docker.run(["volume", "ls", "--quiet", "--filter", "name=forebay-gateway"])?.lines().count())
    }

    fn running(&self, service: &str, wanted: usize) -> Result<bool> {
        let filter = format!("name=forebay_{service}");
        let listed = self.docker.run(["ps", "--filter", &filter, "--format", "{{.Status}}"])?;
        let healthy = listed.lines().filter(|status| status.contains("(healthy)")).count();
        Ok(healthy == wanted && listed.lines().count() == wanted)
    }

    fn takes_events(&self) -> bool {
        let request = http::post("/ingest/event/speed", &["Content-Type: application/json"], b"{}");
        let Ok(address) = self.address() else { return false };
        Connection::open(address).and_then(|mut one| one.send(&request)).is_ok_and(|answer| answer.status == 200)
    }

    fn container(&self, service: &str) -> Result<String> {
        let filter = format!("name=forebay_{service}");
        let listed = self.docker.run(["ps", "--no-trunc", "--quiet", "--filter", &filter])?;
        listed.lines().next().map(str::to_owned).with_context(|| format!("no container of {service} runs"))
    }

    fn wait(&self, what: &str, is_done: impl FnMut() -> Result<bool>) -> Result<()> {
        let Err(error) = until(what, LIMIT, is_done) else { return Ok(()) };
        let tasks = self.docker.run(["stack", "ps", "--no-trunc", NAME])?;
        let logs = self.docker.command().args(["service", "logs", "--tail", "5", "forebay_gateway"]).output()?;
        Err(error.context(format!("{tasks}\n{}", String::from_utf8_lossy(&logs.stderr))))
    }
}

fn haproxy(docker: &Docker) -> Result<()> {
    let start = ["/usr/sbin/haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"];
    let image = Image::new(docker)?.program(Path::new("/usr/sbin/haproxy"), "/usr/sbin/haproxy")?;
    image.entry_point(&start).import(docker, "haproxy:2.6")
}

fn postgres(docker: &Docker) -> Result<()> {
    let mut image = Image::new(docker)?;
    for program in ["/bin/sh", "/usr/bin/id", "/usr/bin/chown", "/usr/bin/cat", "/usr/bin/setpriv"] {
        image = image.program(Path::new(program), program)?;
    }
    for program in ["initdb", "postgres"] {
        let path = format!("{POSTGRES}/bin/{program}");
        image = image.program(Path::new(&path), &path)?;
    }
    let accounts = "root:x:0:0::/:/bin/sh\npostgres:x:999:999::/:/bin/sh\n";
    image = image.copy(Path::new(&format!("{POSTGRES}/lib")), &format!("{POSTGRES}/lib"))?;
    image = image.copy(Path::new("/usr/share/postgresql/15"), "/usr/share/postgresql/15")?;
    image = image.copy(Path::new("/usr/share/zoneinfo"), "/usr/share/zoneinfo")?;
    image =
        image.text("/etc/passwd", accounts, 0o644)?.text("/start", POSTGRES_START, 0o755)?.folder("/tmp", 0, 0o1777)?;
    image.entry_point(&["/start"]).import(docker, "postgres:15")
}

/// Creates the secrets of the stack: the token file, the gateways' token, and PostgreSQL's password.
fn secrets(docker: &Docker, binary: &Path, folder: &Path) -> Result<()> {
    let mut new = Command::new(binary);
    new.args(["token", "new", "gateways", "--scope", "deliver", "--file"]).arg(folder.join("tokens.json"));
    workspace::captured(new.arg("--secret").arg(folder.join("token")))?;
    let mut new = Command::new(binary);
    new.args(["token", "new", "operator", "--scope", "admin", "--file"]).arg(folder.join("tokens.json"));
    workspace::captured(&mut new)?;
    fs::write(folder.join("password"), "password")?;
    for (name, file) in [("tokens", "tokens.json"), ("writers_token", "token"), ("postgres_password", "password")] {
        let path = folder.join(file).display().to_string();
        docker.run(["secret", "create", &format!("forebay_{name}"), &path])?;
    }
    Ok(())
}
