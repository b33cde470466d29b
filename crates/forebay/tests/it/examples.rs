//! The examples as a user of a package gets them: `forebay example` writes each, and its README's commands and its script run there.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use testkit::nats::NatsServer;
use testkit::opensearch::OpenSearch;
use testkit::ports::free_address;
use testkit::postgres::PostgresServer;
use testkit::proxy::Proxy;
use testkit::redis::RedisServer;
use testkit::skipped;
use testkit::swift::{KEY, SwiftServer, USER};
use testkit::tools::tool;

use crate::objects_back::raw;
use crate::support::{Folder, Running, Server, exchange, forebay, wait_until};
use crate::tls::Pair;
use crate::two_services::BackEnd;

/// A written example.
struct Written {
    folder: Folder,
    name: &'static str,
}

impl Written {
    fn new(name: &'static str) -> Self {
        let folder = Folder::new();
        let output = forebay().args(["example", name]).arg(folder.path(name)).output().unwrap();
        assert!(output.status.success(), "{name}: {output:?}");
        Self { folder, name }
    }

    fn path(&self, file: &str) -> String {
        self.folder.text(&format!("{}/{file}", self.name))
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap()
    }

    /// The README's commands of these forms, each on a line of its blocks.
    fn commands(&self, forms: &[&str]) -> String {
        let readme = self.read("README.md");
        let blocks = readme.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        let lines = blocks.flat_map(str::lines).filter(|line| forms.iter().any(|form| line.starts_with(form)));
        lines.flat_map(|line| [line, "\n"]).collect()
    }

    /// Runs a script in the example's folder, where `forebay` is the program that is tested.
    fn run(&self, script: &str, variables: &[(&str, &str)]) -> Output {
        let programs = Path::new(env!("CARGO_BIN_EXE_forebay")).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-euc", script]).current_dir(self.path("")).env("PATH", path).envs(variables.iter().copied());
        // The environment is the test's, not that of the user who runs it.
        let own = std::env::vars_os().map(|(name, _)| name);
        own.filter(|name| name.as_encoded_bytes().starts_with(b"FOREBAY_")).for_each(|name| {
            shell.env_remove(name);
        });
        shell.output().unwrap()
    }

    /// Starts a server with the example's configuration, and runs its script.
    fn post(&self, variables: &[(&str, &str)]) -> Server {
        let server = self.start("serve", "forebay.toml", variables);
        self.expect_posted(&server.url(), variables);
        server
    }

    fn start(&self, role: &str, configuration: &str, variables: &[(&str, &str)]) -> Server {
        let mut command = forebay();
        command.args([role, "--config", configuration]).current_dir(self.path("")).envs(variables.iter().copied());
        Server::start_command(command, &self.folder.data())
    }

    fn expect_posted(&self, url: &str, variables: &[(&str, &str)]) {
        let output = self.run(&format!("./post.sh {url}"), variables);
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && printed.ends_with("all responses are as expected\n"),
            "{}: {printed}{}",
            self.name,
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

impl Written {
    /// `setup.sh` keeps this certificate, so the test needs no openssl.
    fn write_certificate(&self) {
        let pair = Pair::new();
        fs::write(self.path("server.pem"), pair.certificate).unwrap();
        fs::write(self.path("server.key"), pair.key).unwrap();
    }

    /// Runs the README's preparation.
    fn set_up(&self) {
        let output = self.run(&self.commands(&["sh setup.sh"]), &[]);
        assert!(output.status.success(), "{}: {output:?}", self.name);
    }
}

/// The names that the command lists.
fn names() -> Vec<&'static str> {
    let output = forebay().arg("example").output().unwrap();
    let text: &'static str = String::from_utf8(output.stdout).unwrap().leak();
    text.lines().map(|line| line.split(' ').next().unwrap()).collect()
}

#[test]
fn examples_pass_check_and_test() {
    for name in names() {
        let example = Written::new(name);
        example.write_certificate();
        let commands = example.commands(&["export ", "sh setup.sh", "forebay check ", "forebay test "]);
        assert!(commands.contains("forebay check ") && commands.contains("forebay test "), "{name}: {commands}");
        let output = example.run(&commands, &[]);
        let (printed, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name}: {printed}{errors}");
        assert!(!errors.contains("warning"), "{name}: {errors}");
        assert!(printed.contains(", 0 failed\n"), "{name} has no case: {printed}");
    }
}

#[test]
fn example_replaces_no_file() {
    let folder = Folder::new();
    let path = folder.write("post.sh", "mine");
    let output = forebay().args(["example", "redact-personal-data"]).arg(folder.path("")).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains(&format!("{path} exists")), "{error}");
    assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 1, "nothing else is written");
    assert_eq!(fs::read_to_string(path).unwrap(), "mine");
    let output = forebay().args(["example", "redact"]).current_dir(folder.path("")).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("there is no example \"redact\"; the examples are "), "{error}");
}

#[test]
fn written_readme_has_no_broken_link() {
    for name in names() {
        let example = Written::new(name);
        let readme = example.read("README.md");
        let targets = readme.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
        targets.for_each(|target| assert!(Path::new(&example.path(target)).exists(), "{name}: {target}"));
        assert!(readme.contains("docs/"), "{name} names no page");
    }
}

/// The number that a query of a database in the data directory gives.
fn count(data: &Path, query: &str) -> i64 {
    let connection = rusqlite::Connection::open(data.join("events.db")).unwrap();
    connection.query_row(query, [], |row| row.get(0)).unwrap()
}

#[test]
fn access_logs_example_works() {
    let example = Written::new("access-logs-with-aggregates");
    // The windows end soon after the last line.
    let configuration = example.read("forebay.toml").replace("idle_timeout = \"10s\"", "idle_timeout = \"1s\"");
    fs::write(example.path("forebay.toml"), configuration).unwrap();
    let server = example.post(&[]);
    let results = "select count(*) from results";
    assert!(wait_until(|| count(&example.folder.data(), results) == 5), "three minutes and statuses, two visits");
    let visit = "select payload ->> 'pages' from results where payload ->> 'entry' = '/shop' and payload ->> 'exit' = '/shop/cart'";
    assert_eq!(count(&example.folder.data(), visit), 2);
    assert!(wait_until(|| count(&example.folder.data(), "select count(*) from rejected") == 1));
    drop(server);
}

#[test]
fn redact_example_works() {
    Written::new("redact-personal-data").post(&[("PSEUDONYM_KEY", "change-me")]);
}

#[test]
fn retention_example_works() {
    let example = Written::new("retention-and-backup");
    let server = example.post(&[]);
    assert_eq!(server.stop("-TERM"), Some(0));
    let files = || fs::read_dir(example.folder.data().join("archive")).unwrap().flatten();
    assert!(files().any(|file| file.file_name().to_string_lossy().ends_with(".gz")), "a stop ends the file");
    let output = example.run(
        "for n in 1 2; do sh backup.sh \"$DATA\" backups; sleep 1; done",
        &[("DATA", &example.folder.text("data"))],
    );
    assert!(output.status.success(), "{output:?}");
    let copies: Vec<_> = fs::read_dir(example.path("backups")).unwrap().flatten().collect();
    assert_eq!(copies.len(), 2);
    assert_eq!(count(&copies[0].path(), "select count(*) from events"), 2);
}

#[test]
fn log_shippers_example_works() {
    let example = Written::new("log-shippers");
    let server = example.post(&[]);
    server.wait_delivered();
    assert_eq!(count(&example.folder.data(), "select count(*) from logs"), 5, "a resent batch is stored once");
    assert!(wait_until(|| count(&example.folder.data(), "select count(*) from rejected") == 1));
}

#[test]
fn elasticsearch_clients_example_works() {
    let example = Written::new("elasticsearch-clients");
    let server = example.post(&[]);
    server.wait_delivered();
    assert_eq!(count(&example.folder.data(), "select count(*) from events"), 2, "a resent document is stored once");
    // The order without a product, and the second order of an id.
    assert!(wait_until(|| count(&example.folder.data(), "select count(*) from rejected") == 2));
}

#[test]
fn github_webhook_example_works() {
    let example = Written::new("github-webhook");
    let server = example.post(&[("GITHUB_SECRET", "s3cret")]);
    server.wait_delivered();
    assert_eq!(count(&example.folder.data(), "select count(*) from github"), 2, "a replay is stored once");
    assert!(wait_until(|| count(&example.folder.data(), "select count(*) from rejected") == 1));
}

#[test]
fn cloudevents_example_works() {
    let example = Written::new("cloudevents");
    let server = example.post(&[]);
    server.wait_delivered();
    assert_eq!(count(&example.folder.data(), "select count(*) from orders"), 2, "both modes store one event");
    assert!(wait_until(|| count(&example.folder.data(), "select count(*) from rejected") == 1));
}

#[test]
fn splunk_hec_example_works() {
    let example = Written::new("splunk-hec");
    let server = example.post(&[]);
    server.wait_delivered();
    assert_eq!(count(&example.folder.data(), "select count(*) from logs"), 3, "a repeated request is stored once");
}

#[test]
fn segment_example_works() {
    let example = Written::new("segment");
    let server = example.post(&[("EMAIL_KEY", "0123456789abcdef0123456789abcdef")]);
    server.wait_delivered();
    assert_eq!(count(&example.folder.data(), "select count(*) from events"), 3, "a repeated batch is stored once");
    assert!(wait_until(|| count(&example.folder.data(), "select count(*) from rejected") == 1));
}

#[test]
fn loki_example_works() {
    let example = Written::new("loki");
    let server = example.post(&[]);
    server.wait_delivered();
    assert_eq!(count(&example.folder.data(), "select count(*) from logs"), 3, "a repeated push is stored once");
}

#[test]
fn opentelemetry_collector_example_works() {
    let example = Written::new("opentelemetry-collector");
    let server = example.post(&[]);
    server.wait_delivered();
    for table in ["logs", "spans", "metrics"] {
        let stored = count(&example.folder.data(), &format!("select count(*) from {table}"));
        assert_eq!(stored, 1, "{table}: a resent record is stored once");
    }
    assert!(wait_until(|| count(&example.folder.data(), "select count(*) from rejected") == 1));
}

#[test]
fn log_to_elasticsearch_example_works() {
    let Some(search) = OpenSearch::shared() else { return };
    let example = Written::new("log-to-elasticsearch");
    let log = example.path("forebay.log");
    let mut rsyslog = Command::new("rsyslogd");
    rsyslog.args(["-n", "-f", &example.path("rsyslog.conf"), "-i", &example.path("pid")]);
    rsyslog.envs([("LOG", &log), ("STATE", &example.path(""))]);
    let url = format!("http://{}", search.address());
    let Ok(rsyslog) = rsyslog.env("SEARCH_URL", url).stdout(Stdio::null()).spawn() else {
        return skipped::report("rsyslog isn't there (cargo xtask services installs it)");
    };
    let _rsyslog = Running(rsyslog);
    // The banner is in the log, as JSON.
    let mut command = forebay();
    command.args(["serve", "--config", &example.path("forebay.toml")]).stderr(fs::File::create(&log).unwrap());
    let server = Server::start_at(command, &example.folder.data(), [free_address(), free_address()]);
    example.expect_posted(&server.url(), &[]);
    let found = || {
        search.done("POST", "/forebay-log-*/_refresh?allow_no_indices=true", "");
        // An index that is just being created answers 503.
        let found = search.ask("GET", "/forebay-log-*/_search?q=code:schema", "");
        found.status == 200 && found.body.contains("\"type\":\"order\"")
    };
    assert!(wait_until(found), "{}", example.read("forebay.log"));
}

#[test]
fn tokens_and_tls_example_works() {
    let example = Written::new("tokens-and-tls");
    example.write_certificate();
    example.set_up();
    let server = example.start("serve", "forebay.toml", &[]);
    example.expect_posted(&format!("https://{}", server.intake), &[]);
}

#[test]
fn two_services_example_works() {
    let example = Written::new("two-services");
    example.set_up();
    let writer =
        BackEnd::start_on(&example.folder.path("writer"), "127.0.0.1:0", &["--config", &example.path("writer.toml")]);
    let variables = [("WRITER_TOKEN_FILE", "writer.token"), ("FOREBAY_UPSTREAMS_BACK_SERVERS", &writer.url())];
    let server = example.start("gateway", "gateway.toml", &variables);
    example.expect_posted(&server.url(), &variables);
}

#[test]
fn github_example_works() {
    let Some(postgres) = PostgresServer::shared() else { return };
    let example = Written::new("github-webhooks-to-postgres");
    let server = example.post(&[("PG_URL", &postgres.url())]);
    let sql = "select event, action, repository, sender from github_deliveries order by event";
    assert_eq!(postgres.psql(sql), "issues|opened|octo/shop|bob\npush||octo/shop|ann");
    let pushes = "select repository, ref, pusher, jsonb_array_length(commits) from github_pushes";
    assert_eq!(postgres.psql(pushes), "octo/shop|refs/heads/main|ann|1");
    assert!(wait_until(|| postgres.psql("select payload ->> 'code' from github_rejected") == "schema"));
    drop(server);
}

#[test]
fn images_example_works() {
    let Some(swift) = SwiftServer::shared() else { return };
    let example = Written::new("images-to-swift");
    let auth = format!("http://{}/auth/v1.0", swift.address());
    let server = example.post(&[("SWIFT_AUTH", &auth), ("SWIFT_USER", USER), ("SWIFT_KEY", KEY)]);
    let names = swift.client().list("cameras");
    let image = names.iter().find(|name| name.starts_with("images/")).unwrap();
    let request = format!("GET /objects/shots/{image} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let bytes = swift.client().get("cameras", image).unwrap();
    assert!(bytes.starts_with(b"GIF89a"));
    assert!(names.iter().any(|name| name.starts_with("lines/") && name.ends_with(".ndjson.zst")), "{names:?}");
    assert!(raw(server.intake, &request).ends_with(&bytes), "Forebay serves the image");
}

#[test]
fn job_results_example_works() {
    let (Some(postgres), Some(swift), Some(search)) =
        (PostgresServer::shared(), SwiftServer::shared(), OpenSearch::shared())
    else {
        return;
    };
    let Some(redis) = RedisServer::start() else { return };
    let proxy = Proxy::start(&redis.socket());
    let variables = [
        ("PG_URL", postgres.url()),
        ("REDIS_URL", format!("redis://{}", proxy.address())),
        ("SEARCH_URL", format!("http://{}", search.address())),
        ("SWIFT_AUTH", format!("http://{}/auth/v1.0", swift.address())),
        ("SWIFT_USER", USER.to_owned()),
        ("SWIFT_KEY", KEY.to_owned()),
    ];
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let example = Written::new("job-results");
    let server = example.post(&variables);
    assert_eq!(
        postgres.psql("select container_id, outcome, code, worker from jobs"),
        "ab7b85dcac72|success|0|127.0.0.1"
    );
    assert_eq!(redis.ask(&["HLEN", "job-progress"]).number(), 1);
    assert!(swift.client().list("job-reports").iter().any(|name| name.ends_with(".ndjson.gz")));
    search.done("POST", "/job-logs-*/_refresh", "");
    assert!(search.get("/job-logs-*/_search?q=text:loading").contains("loading 12 files"));
    assert!(wait_until(|| postgres.psql("select payload ->> 'code' from job_rejected") == "transform"));
    drop(server);
}

/// A program that is killed when the test ends.
fn spawn(mut command: Command, url: &str) -> Running {
    Running(command.env("NATS_URL", url).spawn().unwrap())
}

#[test]
fn bridge_example_works() {
    let Some(nats) = NatsServer::start() else { return };
    if !tool("bridge/worker").is_file() || !tool("nats-py").is_dir() {
        return skipped::report("the workers of the bridge aren't there (cargo xtask services prepares them, with Go)");
    }
    let example = Written::new("bridge");
    // `services` has fetched the modules.
    let built = example.run("GOPROXY=off go build -mod=mod -o worker .", &[]);
    assert!(built.status.success(), "{built:?}");
    let url = format!("nats://{}", nats.address());
    let _go = spawn(Command::new(example.path("worker")), &url);
    let mut python = Command::new("python3");
    python.arg(example.path("worker.py")).env("PYTHONPATH", tool("nats-py"));
    let _python = spawn(python, &url);
    let server = example.start("serve", "forebay.toml", &[("NATS_URL", &url)]);
    for path in ["/prices/tea", "/orders/00000000-0000-0000-0000-000000000000"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        assert!(wait_until(|| exchange(server.intake, &request).0 != 503), "the service of {path} has come");
    }
    example.expect_posted(&server.url(), &[]);
}
