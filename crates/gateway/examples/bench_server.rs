//! A gateway without delivery, to measure its intake: `bench_server PORT DIRECTORY`.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use eventlog::{EventLog, LogOptions};
use gateway::{Gateway, GatewayOptions, GatewayTypes, TypeRules};
use journal::DataDirectory;
use journal::disk::OsDisk;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [_, port, path] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("usage: bench_server PORT DIRECTORY".into());
    };
    let directory = DataDirectory::open(Arc::new(OsDisk), Path::new(path))?;
    let log = EventLog::open(&directory, &LogOptions::default())?;
    let listener = TcpListener::bind(("127.0.0.1", port.parse()?))?;
    let types = GatewayTypes { open: Some(TypeRules::default()), ..GatewayTypes::default() };
    let _gateway = Gateway::start(listener, &log, types, GatewayOptions::default())?;
    loop {
        std::thread::park();
    }
}
