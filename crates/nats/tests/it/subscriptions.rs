//! Subscriptions: queue groups, full queues, and subscriptions that end.

use nats::BusError;

use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::fixture::{LONG, ask, connected, local, reply, server, subscribed, text};

#[test]
fn queue_group_shares_messages() {
    let Some(server) = server() else { return };
    local(async {
        let (client, worker) = (connected(server.address()).await, connected(server.address()).await);
        let mut one = subscribed(&worker, "_shared", Some("group")).await;
        let mut two = subscribed(&client, "_shared", Some("group")).await;
        while one.try_next().is_some() {}
        for number in 0..100 {
            client.publish(b"_shared", b"", number.to_string().as_bytes()).unwrap();
        }
        let mut numbers = Vec::new();
        while numbers.len() < 100 {
            let message = tokio::select! { message = one.next() => message, message = two.next() => message };
            numbers.push(text(&message.unwrap()).parse::<u32>().unwrap());
        }
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    });
}

#[test]
fn full_queue_drops_further_messages() {
    let Some(server) = server() else { return };
    local(async {
        let client = connected(server.address()).await;
        let mut full = subscribed(&client, "_full", None).await;
        for number in 0..5_000 {
            client.publish(b"_full", b"", number.to_string().as_bytes()).unwrap();
        }
        // The server handles commands in order.
        assert_eq!(ask(&client, "nobody", "x", LONG).await, Err(BusError::NoResponders));
        assert_eq!(full.dropped(), 5_000 - 4_096);
        for number in 0..4_096 {
            assert_eq!(text(&full.try_next().unwrap()), number.to_string());
        }
        client.publish(b"_full", b"", b"again").unwrap();
        assert_eq!(text(&full.next().await.unwrap()), "again");
        let large = vec![b'x'; 1_000_000];
        for _ in 0..20 {
            client.publish(b"_full", b"", &large).unwrap();
            assert_eq!(ask(&client, "nobody", "x", LONG).await, Err(BusError::NoResponders));
        }
        assert_eq!(full.dropped(), 5_000 - 4_096 + 4, "16 MiB are kept");
    });
}

#[test]
fn burst_reaches_an_owner_that_runs() {
    const COUNT: usize = 20_000;
    let Some(server) = server() else { return };
    local(async {
        let (client, worker) = (connected(server.address()).await, connected(server.address()).await);
        let mut burst = subscribed(&worker, "_burst", None).await;
        for _ in 0..COUNT {
            client.publish(b"_burst", b"", b"x").unwrap();
        }
        let receive = async {
            for _ in 0..COUNT {
                burst.next().await.unwrap();
            }
        };
        let received = timeout(LONG, receive).await;
        assert!(received.is_ok() && burst.dropped() == 0, "{} were dropped", burst.dropped());
    });
}

#[test]
fn dropped_subscription_gets_nothing() {
    let Some(server) = server() else { return };
    local(async {
        let client = connected(server.address()).await;
        let mut kept = subscribed(&client, "kept", None).await;
        let ended = subscribed(&client, "ended", None).await;
        drop(ended);
        assert_eq!(ask(&client, "ended", "x", LONG).await, Err(BusError::NoResponders));
        let answer = async { ask(&client, "kept", "x", LONG).await };
        let work = async { reply(&client, &kept.next().await.unwrap(), "y") };
        assert_eq!(tokio::join!(answer, work).0, Ok("y".to_owned()));
        assert_eq!(kept.dropped(), 0);
    });
}

#[test]
fn drained_subscription_has_each_message_sent_before() {
    let Some(server) = server() else { return };
    local(async {
        let (client, worker) = (connected(server.address()).await, connected(server.address()).await);
        let mut drained = subscribed(&worker, "drained", Some("group")).await;
        let mut tasks = JoinSet::new();
        for _ in 0..500 {
            let client = client.clone();
            tasks.spawn_local(async move { ask(&client, "drained", "x", LONG).await });
        }
        let first = drained.next().await.unwrap();
        drained.drain().await;
        reply(&worker, &first, "y");
        while let Some(message) = drained.next().await {
            reply(&worker, &message, "y");
        }
        while let Some(done) = tasks.join_next().await {
            if let Err(error) = done.unwrap() {
                assert_eq!(error, BusError::NoResponders, "sent after the end of the subscription");
            }
        }
    });
}
