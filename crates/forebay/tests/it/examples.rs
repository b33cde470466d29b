//! The examples as a user of a package gets them: `forebay example` writes each, and its README's commands and its script run there.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Folder, Server, forebay, wait_until};

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
        let script = format!("forebay() {{ {} \"$@\"; }}\n{script}", env!("CARGO_BIN_EXE_forebay"));
        let mut shell = Command::new("sh");
        shell.args(["-euc", &script]).current_dir(self.path("")).envs(variables.iter().copied());
        shell.output().unwrap()
    }

    /// Starts a server with the example's configuration, and runs its script.
    fn post(&self, variables: &[(&str, &str)]) -> Server {
        let mut command = forebay();
        command.args(["serve", "--config", &self.path("forebay.toml")]).envs(variables.iter().copied());
        let server = Server::start_command(command, &self.folder.data());
        self.expect_posted(&server.url(), variables);
        server
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
        let commands = example.commands(&["export ", "forebay check ", "forebay test "]);
        assert!(commands.contains("forebay check ") && commands.contains("forebay test "), "{name}: {commands}");
        let output = example.run(&commands, &[]);
        let (printed, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name}: {printed}{errors}");
        assert!(errors.is_empty(), "{name} has warnings: {errors}");
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
    let visit = "select payload ->> 'pages' from results where payload ->> 'exit' = '/shop/cart'";
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
