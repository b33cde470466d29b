//! Servers of a cluster: a client finds the other ones, and leaves a server that shuts down.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use nats::Bus;
use testkit::nats::NatsServer;
use testkit::ports::free_port;
use tokio::task::JoinSet;

use crate::fixture::{LONG, ask, connected, echo, local, reply, subscribed, text, until_answered};

/// So many servers of a cluster, with additional settings.
pub(crate) fn servers(count: usize, settings: &str) -> Option<Vec<NatsServer>> {
    let ports: Vec<u16> = (0..count).map(|_| free_port()).collect();
    let start = |name: usize| {
        let others = ports.iter().filter(|port| **port != ports[name]);
        let routes: Vec<String> = others.map(|port| format!("nats://127.0.0.1:{port}")).collect();
        NatsServer::start_with(&format!(
            "jetstream: false\ndebug: true\nserver_name: s{name}\nlame_duck_duration: 30s\nlame_duck_grace_period: 20s\n\
             cluster {{ name: c, listen: \"127.0.0.1:{}\", routes: {routes:?} }}\n{settings}",
            ports[name]
        ))
    };
    (0..count).map(start).collect()
}

/// Two servers of a cluster.
async fn cluster() -> Option<(NatsServer, NatsServer)> {
    let mut servers = servers(2, "")?;
    let servers = (servers.remove(0), servers.remove(0));
    // A message passes from one to the other.
    let (one, two) = (connected(servers.0.address()).await, connected(servers.1.address()).await);
    echo(&one, "route").await;
    until_answered(&two, "route").await;
    Some(servers)
}

#[test]
fn client_follows_three_servers_as_they_end() {
    local(async {
        let Some(servers) = servers(3, "") else { return };
        let worker = connected(servers[2].address()).await;
        echo(&worker, "echo").await;
        // The URL has the first server only.
        let client = connected(servers[0].address()).await;
        until_answered(&client, "echo").await;
        for server in &servers[..2] {
            server.kill();
            until_answered(&client, "echo").await;
        }
    });
}

#[test]
fn other_server_of_the_cluster_is_found() {
    local(async {
        let Some((one, two)) = cluster().await else { return };
        let (client, worker) = (connected(one.address()).await, connected(two.address()).await);
        echo(&worker, "echo").await;
        until_answered(&client, "echo").await;
        one.kill();
        while client.is_connected() {
            tokio::task::yield_now().await;
        }
        client.connected().await;
        until_answered(&client, "echo").await;
    });
}

/// Asks until the flag is set; each request gets its response.
async fn keep_asking(client: Bus, stop: Rc<Cell<bool>>) -> u64 {
    let mut count = 0;
    while !stop.get() {
        assert_eq!(ask(&client, "echo", &count.to_string(), LONG).await, Ok(format!("={count}")));
        count += 1;
    }
    count
}

#[test]
fn shutdown_of_one_server_loses_no_request() {
    local(async {
        let Some((one, two)) = cluster().await else { return };
        let (client, worker) = (connected(one.address()).await, connected(one.address()).await);
        echo(&worker, "echo").await;
        let mut slow = subscribed(&worker, "slow", Some("group")).await;
        let mut held = JoinSet::new();
        for number in 0..20 {
            let client = client.clone();
            held.spawn_local(async move { (number, ask(&client, "slow", &number.to_string(), LONG).await) });
        }
        let mut messages = Vec::new();
        while messages.len() < 20 {
            messages.push(slow.next().await.unwrap());
        }
        let (mut tasks, stop) = (JoinSet::new(), Rc::new(Cell::new(false)));
        for _ in 0..16 {
            tasks.spawn_local(keep_asking(client.clone(), Rc::clone(&stop)));
        }
        one.signal("USR2");
        // Responses to a new connection have another subject.
        let inbox = |subject: &[u8]| subject[..32].to_vec();
        let first = inbox(messages[0].reply().unwrap());
        loop {
            let answer = tokio::task::spawn_local({
                let client = client.clone();
                async move { ask(&client, "slow", "probe", LONG).await }
            });
            let probe = slow.next().await.unwrap();
            reply(&worker, &probe, "seen");
            assert_eq!(answer.await.unwrap(), Ok("seen".to_owned()));
            if inbox(probe.reply().unwrap()) != first {
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        for message in &messages {
            reply(&worker, message, &text(message));
        }
        while let Some(done) = held.join_next().await {
            let (number, answer) = done.unwrap();
            assert_eq!(answer, Ok(number.to_string()), "a request that waited at the first server");
        }
        // The client, the worker, and the one of the fixture.
        while one.log().matches("Client connection closed").count() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        one.kill();
        assert_eq!(ask(&client, "echo", "after", LONG).await, Ok("=after".to_owned()));
        stop.set(true);
        let mut count = 0;
        while let Some(done) = tasks.join_next().await {
            count += done.unwrap();
        }
        assert!(count > 100, "{count}");
        drop(two);
    });
}
