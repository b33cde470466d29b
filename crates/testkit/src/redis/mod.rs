//! A Redis server of a test's own: a folder under the temporary one, a socket in it.

pub mod cluster;
pub mod sentinels;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::skipped;
use crate::wait::PATIENCE;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A server that ends with its test, however that ends.
pub struct RedisServer {
    folder: PathBuf,
    /// A file of settings, which a sentinel writes to.
    configuration: Option<PathBuf>,
    settings: Vec<String>,
    process: Mutex<Option<Child>>,
    is_frozen: AtomicBool,
    /// Ends the server and removes its files as soon as this end of its pipe is closed.
    watcher: Child,
}

/// A server's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisReply {
    Bytes(Vec<u8>),
    Number(i64),
    Nothing,
    List(Vec<RedisReply>),
}

impl RedisReply {
    pub fn text(self) -> String {
        let Self::Bytes(bytes) = self else { panic!("{self:?} is not a text") };
        String::from_utf8(bytes).unwrap()
    }

    pub fn bytes(self) -> Vec<u8> {
        let Self::Bytes(bytes) = self else { panic!("{self:?} is not a text") };
        bytes
    }

    pub fn list(self) -> Vec<Self> {
        let Self::List(list) = self else { panic!("{self:?} is not a list") };
        list
    }

    /// The value after this name, in a list of names and values.
    pub fn field(self, name: &str) -> Self {
        let mut parts = self.list().into_iter();
        parts.find(|part| *part == Self::Bytes(name.into())).unwrap();
        parts.next().unwrap()
    }

    pub fn number(self) -> u64 {
        let Self::Number(number) = self else { panic!("{self:?} is not a number") };
        number.try_into().unwrap()
    }
}

impl RedisServer {
    /// A running server that waits for its disk; `None`, and a message, if Redis isn't installed.
    pub fn start() -> Option<Self> {
        Self::start_with(&["--appendonly", "yes", "--appendfsync", "always"])
    }

    /// The same with additional settings.
    pub fn start_with(settings: &[&str]) -> Option<Self> {
        Self::start_as(None, settings)
    }

    /// A sentinel with these lines of settings.
    pub fn sentinel(configuration: &str) -> Option<Self> {
        Self::start_as(Some(configuration), &["--sentinel"])
    }

    fn start_as(configuration: Option<&str>, settings: &[&str]) -> Option<Self> {
        match Command::new("redis-server").arg("--version").output() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                skipped::report("Redis isn't installed (apt install redis-server)");
                return None;
            }
            other => drop(other.unwrap()),
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("forebay-redis-{}-{number}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let script = "cat > /dev/null; kill -9 $(cat \"$1/pid\") 2> /dev/null; rm -rf \"$1\"";
        let watcher = Command::new("sh").args(["-c", script, "sh"]).arg(&folder).stdin(Stdio::piped()).spawn().unwrap();
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let configuration = configuration.map(|lines| {
            let path = folder.join("sentinel.conf");
            fs::write(&path, lines).unwrap();
            path
        });
        let server = Self {
            folder,
            configuration,
            settings,
            process: Mutex::new(None),
            is_frozen: AtomicBool::new(false),
            watcher,
        };
        server.run();
        Some(server)
    }

    /// Starts the server over its data, and waits until it answers.
    pub fn run(&self) {
        let mut process = self.process.lock().unwrap();
        let log = File::options().create(true).append(true).open(self.folder.join("log")).unwrap();
        let mut redis = Command::new("redis-server");
        match &self.configuration {
            Some(path) => redis.arg(path),
            None => redis.args(["--port", "0", "--save", ""]),
        };
        redis.arg("--unixsocket").arg(self.socket());
        redis.arg("--dir").arg(&self.folder).arg("--pidfile").arg(self.folder.join("pid")).args(&self.settings);
        let mut child = redis.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let deadline = Instant::now() + PATIENCE;
        while !self.is_ready() {
            assert!(child.try_wait().unwrap().is_none(), "Redis ended: {}", self.log());
            assert!(Instant::now() < deadline, "Redis doesn't answer: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
        *process = Some(child);
    }

    fn is_ready(&self) -> bool {
        let Ok(mut socket) = UnixStream::connect(self.socket()) else { return false };
        let mut answer = [0; 5];
        socket.write_all(b"PING\r\n").is_ok() && socket.read_exact(&mut answer).is_ok() && answer == *b"+PONG"
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Ends the server immediately, as a crash would.
    pub fn kill(&self) {
        let Some(mut child) = self.process.lock().unwrap().take() else { return };
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_file(self.socket()).unwrap();
        self.repair_log();
    }

    /// Cuts an incomplete transaction off the append-only file, as docs/guides/stores/redis.md advises after a crash. Redis 7.0.15 cuts inside of it if
    /// a command is incomplete too, and the second start executes the rest: events are then stored twice.
    fn repair_log(&self) {
        let manifest = self.folder.join("appendonlydir/appendonly.aof.manifest");
        if !manifest.exists() {
            return;
        }
        let mut check = Command::new("redis-check-aof");
        let mut check = check.arg("--fix").arg(manifest).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        // It asks before it cuts. It may have ended without a question.
        let _ = check.stdin.take().unwrap().write_all(b"y\ny\n");
        check.wait().unwrap();
    }

    /// Whether it runs, and isn't frozen.
    pub fn answers(&self) -> bool {
        self.process.lock().unwrap().is_some() && !self.is_frozen.load(Ordering::Relaxed)
    }

    /// Stops the server's process without ending it: it keeps its connections, and answers nothing.
    pub fn freeze(&self) {
        self.is_frozen.store(true, Ordering::Relaxed);
        self.signal("-STOP");
    }

    /// Lets it continue.
    pub fn thaw(&self) {
        self.signal("-CONT");
        self.is_frozen.store(false, Ordering::Relaxed);
    }

    fn signal(&self, signal: &str) {
        let id = self.process.lock().unwrap().as_ref().unwrap().id();
        assert!(Command::new("kill").args([signal, &id.to_string()]).status().unwrap().success());
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// A connection past sink and proxy.
    pub fn client(&self) -> RedisClient {
        RedisClient(BufReader::new(UnixStream::connect(self.socket()).unwrap()))
    }

    /// The server's answer to one command.
    pub fn ask(&self, words: &[&str]) -> RedisReply {
        self.client().ask(words)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // If a start failed the lock is poisoned, and a second failure here would hide the first.
        if let Some(mut child) = self.process.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
    }
}

/// A connection.
pub struct RedisClient(BufReader<UnixStream>);

impl RedisClient {
    /// The server's answer to a command. An error fails the test.
    pub fn ask(&mut self, words: &[&str]) -> RedisReply {
        self.try_ask(words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// The same. On an error, or if the connection breaks, the message.
    pub fn try_ask(&mut self, words: &[&str]) -> Result<RedisReply, String> {
        let mut command = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| command += &format!("${}\r\n{word}\r\n", word.len()));
        self.0.get_mut().write_all(command.as_bytes()).map_err(|error| error.to_string())?;
        self.answer()
    }

    /// A message that the server pushes.
    pub fn next_push(&mut self) -> RedisReply {
        self.answer().unwrap()
    }

    fn answer(&mut self) -> Result<RedisReply, String> {
        let mut line = String::new();
        self.0.read_line(&mut line).map_err(|error| error.to_string())?;
        let rest = line.get(1..).unwrap_or_default().trim_end();
        let number = || rest.parse::<i64>().unwrap();
        match line.as_bytes().first() {
            Some(b'+') => Ok(RedisReply::Bytes(rest.into())),
            Some(b'-') => Err(rest.into()),
            Some(b':') => Ok(RedisReply::Number(number())),
            Some(b'$') if number() < 0 => Ok(RedisReply::Nothing),
            Some(b'$') => {
                let mut bytes = vec![0; usize::try_from(number()).unwrap() + 2];
                self.0.read_exact(&mut bytes).map_err(|error| error.to_string())?;
                bytes.truncate(bytes.len() - 2);
                Ok(RedisReply::Bytes(bytes))
            }
            Some(b'*') => (0..number()).map(|_| self.answer()).collect::<Result<_, _>>().map(RedisReply::List),
            _ => Err(format!("the connection ended: {line:?}")),
        }
    }
}
