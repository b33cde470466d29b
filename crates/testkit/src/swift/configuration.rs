//! The files of a Swift with one copy of everything, and how its processes are started.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{KEY, SwiftProcess};

/// Builds the three rings.
const RINGS: &str = "
import sys
from swift.common.ring import RingBuilder
for name, port in zip(('account', 'container', 'object'), sys.argv[2:]):
    builder = RingBuilder(4, 1, 0)
    builder.add_dev({'region': 1, 'zone': 1, 'ip': '127.0.0.1', 'port': int(port), 'device': 'd1', 'weight': 1})
    builder.rebalance()
    builder.get_ring().save(sys.argv[1] + '/' + name + '.ring.gz')
";

pub(super) fn write(folder: &Path, ports: [u16; 5]) {
    fs::create_dir_all(folder.join("srv/d1")).unwrap();
    let shown = folder.display();
    let file = |name: &str, text: String| fs::write(folder.join(name), text).unwrap();
    file(
        "swift.conf",
        "[swift-hash]\nswift_hash_path_prefix = a\nswift_hash_path_suffix = b\n\
         [storage-policy:0]\nname = one\ndefault = yes\n"
            .to_owned(),
    );
    for part in [SwiftProcess::Account, SwiftProcess::Container, SwiftProcess::Object] {
        let (name, port) = (part.name(), ports[part as usize]);
        file(
            &format!("{name}.conf"),
            format!(
                "[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {port}\nworkers = 0\nswift_dir = {shown}\n\
                 devices = {shown}/srv\nmount_check = false\nuser = {user}\nrecon_cache_path = {shown}\n\
                 fallocate_reserve = 0\n\
                 [pipeline:main]\npipeline = {name}-server\n[app:{name}-server]\nuse = egg:swift#{name}\n[{name}-updater]\n",
                user = user()
            ),
        );
    }
    let (port, memcached) = (ports[SwiftProcess::Proxy as usize], ports[SwiftProcess::Memcached as usize]);
    file(
        "proxy.conf",
        format!(
            "[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = {port}\nworkers = 0\nswift_dir = {shown}\nuser = {user}\n\
             [pipeline:main]\n\
             pipeline = catch_errors gatekeeper healthcheck cache s3api tempauth slo dlo proxy-server\n\
             [filter:catch_errors]\nuse = egg:swift#catch_errors\n[filter:gatekeeper]\nuse = egg:swift#gatekeeper\n\
             [filter:healthcheck]\nuse = egg:swift#healthcheck\n\
             [filter:cache]\nuse = egg:swift#memcache\nmemcache_servers = 127.0.0.1:{memcached}\n\
             [filter:s3api]\nuse = egg:swift#s3api\n\
             [filter:tempauth]\nuse = egg:swift#tempauth\nuser_test_tester = {KEY} .admin\n\
             user_test_reader = {KEY}\n\
             [filter:slo]\nuse = egg:swift#slo\n[filter:dlo]\nuse = egg:swift#dlo\n\
             [app:proxy-server]\nuse = egg:swift#proxy\naccount_autocreate = true\n",
            user = user()
        ),
    );
    let mut rings = Command::new("/usr/bin/python3");
    rings.args(["-c", RINGS]).arg(folder);
    rings.args(
        [SwiftProcess::Account, SwiftProcess::Container, SwiftProcess::Object]
            .map(|part| ports[part as usize].to_string()),
    );
    let output = rings.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Updates the listings with the changes that their server missed while it was down.
pub(super) fn update_listings(folder: &Path) {
    let output =
        Command::new("swift-object-updater").arg(folder.join("object.conf")).args(["once", "--verbose"]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The account that the test runs as: servers of another one couldn't be started by it.
fn user() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

pub(super) fn command(folder: &Path, part: SwiftProcess, port: u16) -> Command {
    if part == SwiftProcess::Memcached {
        let mut command = Command::new("memcached");
        command.args(["-l", "127.0.0.1", "-p", &port.to_string(), "-m", "8", "-U", "0", "-u", &user()]);
        return command;
    }
    let name = part.name();
    let mut command = Command::new(format!("swift-{name}-server"));
    command.arg(folder.join(format!("{name}.conf"))).arg("--verbose");
    command.current_dir(folder);
    command
}
