//! Routes that are removed for a time while their sink stays for other types: events of that time are skipped,
//! regardless of the cursors of lanes and stores.

use std::time::Duration;

use ledger::{Begin, Routes};

use super::harness::FENCED;
use super::harness::Harness;
use super::harness::KEYED;
use super::harness::name;
use super::harness::run;
use super::harness::seconds;

/// Type `z` goes to both sinks, and `a` to these.
fn routes(of_a: &[&str]) -> Routes {
    let sinks = of_a.iter().map(|sink| (*sink).into());
    Routes::new().with(name("a"), sinks).with(name("z"), [FENCED.into(), KEYED.into()])
}

/// Stored, dead, skipped, pending of type `a`.
fn counts(harness: &Harness, sink: &str) -> [u64; 4] {
    let rows = harness.rows();
    let row = rows.iter().find(|row| row.type_name == name("a")).unwrap();
    let row = row.sinks.iter().find(|row| &*row.sink == sink).unwrap();
    [row.stored, row.dead, row.skipped, row.pending]
}

/// Waits until the transactional store has exactly this many events: its cursor is not saved.
async fn until_stored(harness: &Harness, count: usize) {
    for _ in 0..1000 {
        if harness.fenced.count() == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("{} of {count} are stored", harness.fenced.count());
}

#[test]
fn store_ahead_gets_no_events_of_the_gap() {
    for power in [false, true] {
        run(async move {
            let mut harness = Harness::new(90);
            harness.routes = routes(&[FENCED, KEYED]);
            harness.start();
            harness.append(0, "a", 5).await;
            harness.wait_until_settled().await;
            seconds(2).await;
            harness.change(routes(&[])).await.unwrap();
            harness.append(0, "a", 20).await;
            harness.append(0, "z", 1).await;
            until_stored(&harness, 6).await;
            if power {
                harness.power_cut(1).await;
            } else {
                harness.kill(1).await;
            }
            harness.routes = routes(&[FENCED, KEYED]);
            harness.start();
            harness.append(0, "a", 1).await;
            harness.wait_until_settled().await;
            harness.check_balance();
            for (sink, store) in [(FENCED, &harness.fenced), (KEYED, &harness.keyed)] {
                assert_eq!(counts(&harness, sink), [6, 0, 20, 0], "{sink}");
                assert_eq!(store.count(), 7, "{sink}");
            }
        });
    }
}

#[test]
fn route_begins_after_the_cursor_of_store_ahead() {
    run(async {
        let mut harness = Harness::new(91);
        harness.begin = Begin::Oldest;
        harness.routes = routes(&[]);
        harness.start();
        harness.append(0, "z", 1).await;
        harness.wait_until_settled().await;
        seconds(2).await;
        harness.append(0, "a", 20).await;
        harness.append(0, "z", 1).await;
        until_stored(&harness, 2).await;
        harness.kill(1).await;
        harness.routes = routes(&[FENCED]);
        harness.start();
        harness.append(0, "a", 3).await;
        harness.wait_until_settled().await;
        harness.check_balance();
        assert_eq!(counts(&harness, FENCED), [3, 0, 20, 0]);
        assert_eq!(harness.fenced.count(), 5);
    });
}

#[test]
fn skipped_events_stay_skipped_when_the_route_returns() {
    for pause in [0, 100, 5000] {
        run(async move {
            let mut harness = Harness::new(92);
            harness.routes = routes(&[FENCED, KEYED]);
            harness.start();
            harness.append(0, "a", 5).await;
            harness.wait_until_settled().await;
            harness.change(routes(&[])).await.unwrap();
            harness.append(0, "a", 20).await;
            tokio::time::sleep(Duration::from_millis(pause)).await;
            let sinks = [(FENCED, harness.fenced.clone()), (KEYED, harness.keyed.clone())];
            sinks.iter().for_each(|(sink, _)| assert_eq!(counts(&harness, sink), [5, 0, 20, 0], "{pause}: {sink}"));
            harness.change(routes(&[FENCED, KEYED])).await.unwrap();
            sinks.iter().for_each(|(sink, _)| assert_eq!(counts(&harness, sink), [5, 0, 20, 0], "{pause}: {sink}"));
            harness.append(0, "a", 2).await;
            harness.wait_until_settled().await;
            harness.check_balance();
            for (sink, store) in sinks {
                assert_eq!(counts(&harness, sink), [7, 0, 20, 0], "{pause}: {sink}");
                assert_eq!(store.count(), 7, "{pause}: {sink}");
            }
        });
    }
}

#[test]
fn returning_route_delivers_its_backlog_without_the_gap() {
    run(async {
        let mut harness = Harness::new(93);
        harness.routes = routes(&[FENCED, KEYED]);
        harness.fenced.fail_next(1_000_000);
        harness.keyed.fail_next(1_000_000);
        harness.start();
        for _ in 0..3 {
            harness.append(0, "a", 4).await;
            harness.change(routes(&[])).await.unwrap();
            harness.append(0, "a", 10).await;
            harness.append(1, "a", 10).await;
            harness.change(routes(&[FENCED, KEYED])).await.unwrap();
            harness.kill(1).await;
            harness.start();
        }
        assert_eq!(counts(&harness, FENCED), [0, 0, 60, 12]);
        harness.fenced.heal();
        harness.keyed.heal();
        seconds(100).await;
        harness.wait_until_settled().await;
        harness.check_balance();
        assert_eq!((counts(&harness, FENCED), counts(&harness, KEYED)), ([12, 0, 60, 0], [12, 0, 60, 0]));
        assert_eq!((harness.fenced.count(), harness.keyed.count()), (12, 12));
    });
}

#[test]
fn route_removed_before_its_sink_skips_later_events() {
    run(async {
        let mut harness = Harness::new(94);
        harness.routes = routes(&[KEYED, FENCED]);
        harness.keyed.fail_next(1_000_000);
        harness.start();
        harness.append(0, "a", 2).await;
        harness.change(routes(&[FENCED])).await.unwrap();
        harness.append(0, "a", 3).await;
        let without_sink = Routes::new().with(name("a"), [FENCED.into()]).with(name("z"), [FENCED.into()]);
        harness.change(without_sink).await.unwrap();
        harness.append(0, "a", 4).await;
        harness.append(0, "z", 5).await;
        harness.keyed.heal();
        harness.change(routes(&[KEYED, FENCED])).await.unwrap();
        seconds(100).await;
        harness.wait_until_settled().await;
        harness.check_balance();
        assert_eq!(counts(&harness, KEYED), [2, 0, 7, 0]);
    });
}
