//! A gateway without delivery, to measure its intake: `bench_server PORT DIRECTORY`. Segments are freed as if all
//! events were delivered immediately.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use eventlog::{EventLog, LogOptions};
use gateway::{Gateway, GatewayOptions, GatewayTypes, TypeRules};
use journal::DataDirectory;
use journal::disk::OsDisk;

const FREE_EVERY: Duration = Duration::from_millis(50);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [_, port, path] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("usage: bench_server PORT DIRECTORY".into());
    };
    let directory = DataDirectory::open(Arc::new(OsDisk), Path::new(path))?;
    let log = EventLog::open(&directory, &LogOptions::default())?;
    let listener = TcpListener::bind(("127.0.0.1", port.parse()?))?;
    let types = GatewayTypes { open: Some(TypeRules::default()), ..GatewayTypes::default() };
    let _gateway = Gateway::start(listener, Vec::new(), &log, types, GatewayOptions::default())?;
    loop {
        std::thread::sleep(FREE_EVERY);
        for shard in log.shards() {
            shard.segments().free_up_to(shard.durable())?;
        }
    }
}
