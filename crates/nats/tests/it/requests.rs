//! Requests, and workers that respond twice, late, never or wrongly.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::time::Duration;

use nats::{Bus, BusError, Message, Outgoing};
use testkit::nats::NatsServer;
use tokio::task::{JoinSet, spawn_local};

use crate::fixture::{LONG, SHORT, ask, connected, echo, local, reply, server, subject, subscribed, text};

#[test]
fn each_request_in_flight_gets_its_own_response() {
    let Some(server) = server() else { return };
    local(async {
        let (client, worker) = (connected(server.address()).await, connected(server.address()).await);
        let mut subscription = subscribed(&worker, "many", None).await;
        spawn_local(async move {
            while let Some(first) = subscription.next().await {
                let mut messages = vec![first];
                messages.extend(std::iter::from_fn(|| subscription.try_next()));
                // In another order than they were sent.
                for message in messages.iter().rev() {
                    let headers = format!("Length: {}\r\n", message.payload().len());
                    let name = message.headers().unwrap().get("name").unwrap().to_vec();
                    worker.publish(message.reply().unwrap(), headers.as_bytes(), &name).unwrap();
                }
            }
        });
        let mut tasks = JoinSet::new();
        for task in 0..300_usize {
            let client = client.clone();
            tasks.spawn_local(async move {
                for round in 0..20 {
                    let (name, payload) = (format!("{task}-{round}"), vec![b'x'; task * 7]);
                    let headers = format!("Name: {name}\r\n");
                    let outgoing =
                        Outgoing { subject: &subject("many"), headers: headers.as_bytes(), payload: &payload };
                    let message = client.request(&outgoing, LONG).await.unwrap();
                    assert_eq!(text(&message), name);
                    let length = message.headers().unwrap().get("length").unwrap().to_vec();
                    assert_eq!(length, payload.len().to_string().as_bytes());
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    });
}

/// The requests that had no response in time.
type TimedOut = Rc<RefCell<HashSet<String>>>;

/// A worker that responds as the payload says: once, twice, late or never.
async fn work_as_told(worker: Bus, timed_out: TimedOut) {
    let mut subscription = subscribed(&worker, "told", None).await;
    let mut late: Vec<Message> = Vec::new();
    while let Some(message) = subscription.next().await {
        late.retain(|message| {
            let is_over = timed_out.borrow_mut().remove(&text(message));
            if is_over {
                reply(&worker, message, "late");
            }
            !is_over
        });
        let told = text(&message);
        match told.split(' ').next() {
            Some("twice") => (0..2).for_each(|_| reply(&worker, &message, &told)),
            Some("late") => late.push(message),
            Some("never") => {}
            _ => reply(&worker, &message, &told),
        }
    }
}

#[test]
fn second_and_late_responses_reach_no_other_request() {
    let Some(server) = server() else { return };
    local(async {
        let (client, worker) = (connected(server.address()).await, connected(server.address()).await);
        let timed_out = TimedOut::default();
        spawn_local(work_as_told(worker, Rc::clone(&timed_out)));
        while ask(&client, "told", "once", SHORT).await.is_err() {}
        let mut tasks = JoinSet::new();
        for task in 0..50 {
            let (client, timed_out) = (client.clone(), Rc::clone(&timed_out));
            tasks.spawn_local(async move {
                for round in 0..40 {
                    let how = ["once", "twice", "late", "twice", "never"][(task + round) % 5];
                    let payload = format!("{how} {task} {round}");
                    let is_answered = matches!(how, "once" | "twice");
                    let expected = if is_answered { Ok(payload.clone()) } else { Err(BusError::TimedOut) };
                    let limit = if is_answered { LONG } else { Duration::from_millis(10) };
                    assert_eq!(ask(&client, "told", &payload, limit).await, expected);
                    if !is_answered {
                        timed_out.borrow_mut().insert(payload);
                    }
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    });
}

#[test]
fn request_without_a_responder_fails_immediately() {
    let Some(server) = server() else { return };
    local(async {
        let client = connected(server.address()).await;
        assert_eq!(ask(&client, "nobody", "x", LONG).await, Err(BusError::NoResponders));
    });
}

#[test]
fn message_above_the_servers_maximum_is_not_sent() {
    let Some(server) = NatsServer::start_with("max_payload: 1000\n") else { return };
    local(async {
        let client = connected(server.address()).await;
        assert_eq!(client.max_payload(), 1_000);
        let worker = connected(server.address()).await;
        echo(&worker, "large").await;
        let headers = b"A: b\r\n";
        for (headers, size, fits) in
            [(&b""[..], 999, true), (b"", 1_001, false), (headers, 982, true), (headers, 983, false)]
        {
            let payload = vec![b'x'; size];
            let outgoing = Outgoing { subject: &subject("large"), headers, payload: &payload };
            let answer = client.request(&outgoing, LONG).await;
            if fits {
                assert!(answer.is_ok(), "{size}: {answer:?}");
            } else {
                assert_eq!(answer, Err(BusError::TooLarge { max: 1_000 }), "{size}");
            }
        }
        let answer = worker.publish(b"_somewhere", b"", &[b'x'; 1_001]);
        assert_eq!(answer, Err(BusError::TooLarge { max: 1_000 }));
        assert!(client.is_connected() && worker.is_connected());
    });
}

#[test]
fn malformed_headers_do_not_end_the_connection() {
    let Some(server) = server() else { return };
    local(async {
        let client = connected(server.address()).await;
        let mut subscription = subscribed(&client, "odd", None).await;
        let outgoing = Outgoing { subject: &subject("odd"), headers: b"", payload: b"x" };
        let odd = spawn_local(client.request(&outgoing, LONG));
        let message = subscription.next().await.unwrap();
        let to = String::from_utf8(message.reply().unwrap().to_vec()).unwrap();
        // Nothing responds to the raw client's message: it waits for no answer.
        let mut raw = server.client();
        raw.send_only(&to, "no colon\r\n", "payload");
        let answer = odd.await.unwrap().unwrap();
        assert!(answer.headers().is_err());
        assert_eq!(text(&answer), "payload");
        echo(&client, "even").await;
        assert_eq!(ask(&client, "even", "x", LONG).await, Ok("=x".to_owned()));
    });
}

#[test]
fn dropped_request_discards_its_response() {
    let Some(server) = server() else { return };
    local(async {
        let client = connected(server.address()).await;
        let mut subscription = subscribed(&client, "dropped", None).await;
        let outgoing = Outgoing { subject: &subject("dropped"), headers: b"", payload: b"1" };
        drop(client.request(&outgoing, LONG));
        let first = subscription.next().await.unwrap();
        let second = spawn_local(client.request(&Outgoing { payload: b"2", ..outgoing }, LONG));
        let other = subscription.next().await.unwrap();
        reply(&client, &first, "1");
        reply(&client, &other, "2");
        assert_eq!(text(&second.await.unwrap().unwrap()), "2");
    });
}

#[test]
fn large_response_without_room_is_skipped() {
    let Some(server) = server() else { return };
    local(async {
        let (client, worker) = (connected(server.address()).await, connected(server.address()).await);
        let mut requests = subscribed(&worker, "large", None).await;
        let (outgoing, large) =
            (Outgoing { subject: &subject("large"), headers: b"", payload: b"" }, vec![b'x'; 900_000]);
        let ask = |room_max: usize| client.request_with_room(&outgoing, LONG, Box::new(move |bytes| bytes <= room_max));
        // In one burst, with a small one that follows immediately.
        let all = [0, 1_000_000, 0, 800_000].map(ask);
        let small = ask(0);
        for payload in [&large[..], &large, &large, &large, b"small"] {
            worker.publish(requests.next().await.unwrap().reply().unwrap(), b"", payload).unwrap();
        }
        let mut found = Vec::new();
        for answer in all {
            found.push(match answer.await {
                Ok(message) => message.payload() == large,
                Err(BusError::NoRoom { bytes }) if bytes > large.len() => false,
                other => panic!("{other:?}"),
            });
        }
        assert_eq!(found, [false, true, false, false]);
        assert_eq!(text(&small.await.unwrap()), "small");
    });
}

#[test]
fn response_is_published_to_inboxes_only() {
    let Some(server) = server() else { return };
    local(async {
        let client = connected(server.address()).await;
        for to in [&b"$JS.API.STREAM.DELETE.EVENTS"[..], b"$SYS.REQ.SERVER.PING", b"shop.orders.delete", &[b'_'; 4_000]]
        {
            let answer = client.publish(to, b"", b"");
            assert!(matches!(answer, Err(BusError::Forbidden(_))), "{answer:?}");
        }
    });
}

#[test]
fn closed_bus_has_sent_everything() {
    let Some(server) = server() else { return };
    local(async {
        let (client, worker) = (connected(server.address()).await, connected(server.address()).await);
        let mut subscription = subscribed(&worker, "_last", None).await;
        let payload = Rc::new(vec![b'x'; 100_000]);
        for _ in 0..50 {
            client.publish(b"_last", b"", &payload).unwrap();
        }
        let mut own = client.subscribe(&subject("own"), None);
        client.close().await;
        for _ in 0..50 {
            assert_eq!(subscription.next().await.unwrap().payload().len(), payload.len());
        }
        assert!(own.next().await.is_none(), "its subscriptions have ended");
        assert!(!client.is_connected());
        assert!(matches!(ask(&client, "last", "x", SHORT).await, Err(BusError::Unavailable(_))));
    });
}
