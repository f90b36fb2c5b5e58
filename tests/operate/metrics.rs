//! The table of metrics: that the page of a program has them all.

use super::monitor::parse;
use crate::harness::double::{Double, table};
use crate::harness::program::{Program, WATCHED, get, json_of, key_of, operate};
use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use tempfile::TempDir;
use test_postgres::TestPostgres;
use toolwarrant_base::clock::Clock;
use toolwarrant_operator::{Names, metrics::reference};

const NAMES: [&str; 2] = ["cloudphone", "0.1.0"];

async fn page(program: &Program) -> String {
    get(&format!("{}/metrics", program.monitor())).await.2
}

#[test]
fn the_page_of_metrics_is_that_of_the_table() {
    let page = include_str!("../../docs/metrics.md");
    assert!(reference(&Names::of(NAMES[0], NAMES[1])) == page, "docs/metrics.md is stale: run `cargo xtask gen`");
}

/// Returns the names of all metrics, each with its labels.
fn rows() -> BTreeSet<String> {
    let page = reference(&Names::of(NAMES[0], NAMES[1])).replace('`', "");
    let cells = page.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    cells.filter(|cells| cells.len() == 6).skip(2).map(|cells| format!("{} {}", cells[1], cells[3])).collect()
}

/// Returns those on a page, without the label of spans.
fn samples(page: &str) -> BTreeSet<String> {
    let series = parse(page).into_keys().map(|series| {
        let (name, labels) = series.split_once('{').unwrap_or((&series, ""));
        let of_spans = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        let labels = labels.split(',').filter_map(|label| label.split_once('=')).map(|(label, _)| label);
        let labels: Vec<_> = labels.filter(|label| *label != "le").collect();
        format!("{} {}", of_spans.unwrap_or(name), labels.join(", "))
    });
    series.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_metric_on_a_page_has_a_row_and_every_row_has_a_sample() {
    let alone = Program::start(WATCHED).await;
    let backup = alone.home.path().join("one.tar");
    assert_eq!(operate(&alone.data, &format!("backup {}", backup.display())).await.0, 0);
    let mut found = samples(&page(&alone).await);
    assert_eq!(found.difference(&rows()).next(), None);

    let Some(server) = TestPostgres::start() else { return };
    let url = server.schema().await.expect("the server runs").url;
    let (home, double) = (Arc::new(TempDir::new().expect("a temporary folder")), Double::start(1, &[]).await);
    let file = home.path().join("cloudphone.toml");
    let platform = table("lab", &double, &home).replace("-file = \"", &format!("-file = \"{}/", home.path().display()));
    fs::write(&file, platform).expect("written");
    let (code, said) = operate(&home.path().join("data"), &format!("store init --replica one --store {url}")).await;
    assert_eq!(code, 0, "{said}");
    let file = file.to_str().expect("text");
    let replica = driver::Start::new(crate::harness::program::binary(), home.path());
    let replica = replica.flags(&[WATCHED, &["--config", file, "--store", &url, "--replica", "one"]].concat());
    let replica = Program::start_as(home, replica).await;
    let complete = driver::wait_for(async || {
        found.extend(samples(&page(&replica).await));
        if found == rows() { Ok(()) } else { Err(format!("{:?}", found.symmetric_difference(&rows()))) }
    });
    complete.await.expect("both have all");
}

#[tokio::test]
async fn keys_that_end_a_backup_and_the_process_are_measured() {
    let program = Program::start(WATCHED).await;
    let data = &program.data;
    let value = async |name: &str| parse(&page(&program).await).get(name).copied();
    for line in ["app create shop --permission device", "app create gone --permission device"] {
        assert_eq!(operate(data, line).await.0, 0, "{line}");
    }
    let key = key_of(data, "shop").await;
    for days in [6, 8] {
        json_of(data, &format!("key create shop --expires {days}")).await;
        json_of(data, &format!("key create gone --expires {days}")).await;
        for end in ["revoke", "suspend"] {
            let made = json_of(data, &format!("key create shop --expires {days}")).await;
            assert_eq!(operate(data, &format!("key {end} {}", made["key_id"].as_str().expect("an id"))).await.0, 0);
        }
    }
    assert_eq!(value("cloudphone_keys_ending_soon").await, Some(2.0));
    for (line, ending) in [("app delete gone --yes".to_owned(), 1.0), (format!("key expire {} 2d", key.id), 2.0)] {
        assert_eq!(operate(data, &line).await.0, 0, "{line}");
        assert_eq!(value("cloudphone_keys_ending_soon").await, Some(ending), "{line}");
    }

    let file = program.home.path().join("one.tar");
    fs::write(&file, "").expect("written");
    assert_eq!(operate(data, &format!("backup {}", file.display())).await.0, 1, "it exists");
    assert_eq!(value("cloudphone_last_backup_timestamp_seconds").await, None, "a failure is no backup");
    fs::remove_file(&file).expect("removed");
    assert_eq!(operate(data, &format!("backup {}", file.display())).await.0, 0);
    let at = value("cloudphone_last_backup_timestamp_seconds").await.expect("a time");
    assert!((Clock::system().wall().0 as f64 / 1e3 - at).abs() < 600.0, "{at}");
    let page = parse(&page(&program).await);
    let [open, max, bytes] =
        ["open_fds", "max_fds", "resident_memory_bytes"].map(|name| page[&format!("process_{name}")]);
    assert!(3.0 < open && open < max && bytes > 1e6 && page["process_cpu_seconds_total"] > 0.0, "{page:?}");
    assert!(page["cloudphone_disk_available_bytes"] <= page["cloudphone_disk_size_bytes"], "{page:?}");
    assert!(page["cloudphone_audit_seal_age_seconds"] < 600.0, "{page:?}");
}
