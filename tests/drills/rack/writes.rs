//! Restarts while the adb servers and the program are killed and started again and again.

use super::{RackOptions, RackSite, measure_return, options, restart, show};
use crate::drills::crash::audit::AuditBooks;
use crate::drills::crash::load::{Load, Plan, Wish};
use rusqlite::Connection;
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::sleep;
use toolwarrant_base::random::SplitMix;

const PHONES: u8 = 12;

const PAUSE: Duration = Duration::from_millis(300);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs root and Debian: cargo xtask drill rack"]
async fn no_kill_of_a_server_or_of_the_program_loses_or_repeats_a_restart() {
    let options = options::<RackOptions>();
    let (writes, seed) = (options.writes.unwrap_or(200), options.seed);
    let mut site = RackSite::start(&options, PHONES, 20).await;
    let mut ids: Vec<String> = site.phones.keys().cloned().collect();
    ids.sort();
    let wish = move |number: u64| {
        let (device, repeated) = Wish::share(number);
        let id = &ids[device as usize % ids.len()];
        Wish::with_key("set_power", id.clone(), Some(format!("wish-{repeated}")), restart(id))
    };
    let flags = site.flags().to_vec();
    let plan = Plan { seed, flags, life: 500..8_000, patience: Duration::MAX, reads: false, wish: Box::new(wish) };
    let mut load = Load::of(plan).await;
    load.allow_every(PAUSE);
    let [twelve, thirteen] = &mut site.servers;
    let (mut random, mut servers_killed, mut kills) = (SplitMix(seed), 0, 0);
    let swallowing = &site.phones;
    let end_of_load = async {
        while load.count_acknowledged() < writes {
            load.kill().await;
            kills += 1;
            if load.count_acknowledged() * 2 >= writes {
                // The reading of these phones was proven meanwhile.
                for phone in swallowing.values().take(4) {
                    phone.swallow(true).expect("a switch");
                }
            }
        }
    };
    let killing = async {
        loop {
            let server = if random.below(2) == 0 { &mut *twelve } else { &mut *thirteen };
            sleep(Duration::from_millis(2_000 + random.below(20_000))).await;
            server.kill().expect("it ran");
            servers_killed += 1;
            sleep(Duration::from_millis(random.below(4_000))).await;
            server.start().await.expect("it starts again");
        }
    };
    tokio::select! {
        () = end_of_load => {}
        () = killing => {}
    }
    for server in [twelve, thirteen] {
        server.kill().expect("it ran");
        server.start().await.expect("it starts again");
    }
    let (told, load) = load.settle().await;
    let (books, figures) = AuditBooks::compare_on_rack(&load.data, &told, &site.read_journals(), &HashSet::new());
    show([("adb servers killed", servers_killed), ("ended by kill -9", kills), ("calls answered", told.len() as u64)]);
    show(figures);
    let starts = count_proven(&load.data);
    show([("phones whose reading was proven", starts)]);
    let program = site.serve().await;
    let mut slowest = Duration::ZERO;
    for _ in 0..5 {
        slowest = slowest.max(measure_return(&mut site, &program).await);
    }
    show([("milliseconds until all phones run after a return of the servers", slowest.as_millis() as u64)]);
    assert!(load.unended == 0 && books.violations.is_empty(), "{:#?}", books.violations);
    assert!(slowest < Duration::from_secs(10), "{slowest:?}");
}

fn count_proven(data: &std::path::Path) -> u64 {
    let database = Connection::open(data.join("cloudphone.db")).expect("a database");
    let sql = "SELECT count(*) FROM file WHERE name LIKE 'phones/%' AND json_extract(CAST(content AS TEXT), '$.known.start') LIKE '%RACK%'";
    database.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a count").cast_unsigned()
}
