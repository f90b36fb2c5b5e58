//! The table of metrics and the alert rules: that the page of a program has them all, and that each
//! rule fires when it should and only then. Without promtool, the rules are not tried.

use super::monitor::parse;
use crate::harness::double::{Double, table};
use crate::harness::program::{Program, WATCHED, get, json_of, key_of, operate, operator, says};
use kit::TestPostgres;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tempfile::TempDir;
use toolwarrant_base::clock::Clock;
use toolwarrant_operator::Names;
use toolwarrant_operator::metric::TABLE;

async fn page(program: &Program) -> String {
    get(&format!("{}/metrics", program.monitor())).await.2
}

/// Returns the names of all metrics, each with its labels.
fn rows() -> BTreeSet<String> {
    let names = Names::of("cloudphone", "0.1.0");
    TABLE.iter().map(|row| format!("{}{} {}", row.prefix(&names), row.name, row.labels.join(", "))).collect()
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
    let url = server.schema().await.expect("the server runs");
    let (home, double) = (Arc::new(TempDir::new().expect("a temporary folder")), Double::start(1, &[]).await);
    let file = home.path().join("cloudphone.toml");
    let platform = table("lab", &double, &home).replace("-file = \"", &format!("-file = \"{}/", home.path().display()));
    fs::write(&file, platform).expect("written");
    says(&home.path().join("data"), &format!("store init --replica one --store {url}"), 0, "").await;
    let file = file.to_str().expect("text");
    let replica = kit::Start::new(crate::harness::program::binary(), home.path());
    let replica = replica.flags(&[WATCHED, &["--config", file, "--store", &url, "--replica", "one"]].concat());
    let replica = Program::start_as(home, replica).await;
    let complete = kit::wait_for(async || {
        found.extend(samples(&page(&replica).await));
        if found == rows() {
            Ok(())
        } else {
            Err(format!("{:?}", found.symmetric_difference(&rows()).collect::<Vec<_>>()))
        }
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

/// A rule and the minute of the look, and under it the series: the values each minute on the
/// instance `ill`, on which the rule fires, and on `well`.
const CASES: &str = r#"
RefundInvariantBroken 10
    refund_invariant_violations{} 1+0x10 0+0x10
WritesUnproven 65
    tasks_ended_total{status="timeout"} 0+1x70 0+1x70
    tasks_ended_total{status="success"} 0+1x70 0+100x70
WritesUnproven 65
    tasks_ended_total{status="failed_silent"} 0+1x70 0+0.05x70
EngineLate 5
    engine_lag_seconds{} 31+0x10 29+0x10
StoreCannotCommit 12
    store_commit_failures_total{} 0+1x15 5+0x15
NobodyLeads 5
    replica_lease{} 0+0x10 _x10
    replica_waits{} 1+0x10 _x10
NobodyWaits 10
    replica_lease{} 1+0x20 _x20
    replica_waits{} 0+0x20 _x20
NoStandby 10
    store_safe_copies{} 1+0x20 2+0x20
AuditLate 5
    audit_backlog{} 40000+0x10 100+0x10
    audit_seal_age_seconds{} 0+0x10 200+0x10
    tool_calls_total{tool="a",outcome="ok"} 0+1x10 0+1x10
AuditLate 8
    audit_seal_age_seconds{} 400+0x10 400+0x10
    tool_calls_total{tool="a",outcome="ok"} 0+1x10 7+0x10
UpstreamUnreachable 8
    upstream_reachable{upstream="lab"} 0+0x10 1+0x10
ToolFails 25
    tool_calls_total{tool="a",outcome="not_found"} 0+10x30 0+10x30
    tool_calls_total{tool="a",outcome="ok"} 0+1x30 0+30x30
InternalErrors 8
    tool_calls_total{tool="a",outcome="internal"} 0+1x10 3+0x10
ConnectionsRefused 12
    connections_refused_total{} 0+1x15 9+0x15
KeysEndSoon 70
    keys_ending_soon{} 1+0x90 0+0x90
BackupOverdue 4320
    last_backup_timestamp_seconds{} 0+0x4400 172800+0x4400
BackupOverdue 400
    store_commits_total{} 1+0x400 1+0x400
    last_backup_timestamp_seconds{} _x400 0+0x400
BackupOverdue 400
    store_commits_total{} 1+0x400 1+0x400
    replica_epoch{} _x400 3+0x400
DiskNearlyFull 15
    disk_available_bytes{} 9+0x20 11+0x20
    disk_size_bytes{} 100+0x20 100+0x20
FilesNearLimit 15
    process_open_fds{} 81+0x20 79+0x20
    process_max_fds{} 100+0x20 100+0x20
    build_info{} 1+0x20 1+0x20
FilesNearLimit 15
    process_open_fds{} 81+0x20 81+0x20
    process_max_fds{} 100+0x20 100+0x20
    build_info{} 1+0x20 _x20
LogLinesLost 8
    log_lines_lost_total{} 0+1x10 9+0x10
"#;

/// Expects that no other rule fires either.
fn promtool_cases() -> String {
    let mut text = "rule_files: [rules.yml]\nevaluation_interval: 1m\ntests:\n".to_owned();
    for line in CASES.trim().lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if let [alert, minute] = words[..] {
            let _ = writeln!(
                text,
                "- interval: 1m\n  promql_expr_test:\n  - expr: 'count by (alertname, instance) (ALERTS{{alertstate=\"firing\"}})'\n    \
                 eval_time: {minute}m\n    exp_samples: [{{labels: '{{alertname=\"{alert}\", instance=\"ill\"}}', value: 1}}]\n  input_series:"
            );
        } else {
            let prefix = if words[0].starts_with("process_") { "" } else { "cloudphone_" };
            for (instance, values) in [("ill", words[1]), ("well", words[2])] {
                let series = words[0].replace('{', &format!("{{job=\"j\",instance=\"{instance}\","));
                let _ = writeln!(text, "  - {{series: '{prefix}{series}', values: '{values}'}}");
            }
        }
    }
    text
}

/// Returns the output of promtool, unless it is content.
fn refuse(arguments: &[&str], input: &str) -> Option<String> {
    let mut command = Command::new("promtool");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("it ends");
    let said = [output.stdout, output.stderr].concat();
    (!output.status.success()).then(|| String::from_utf8_lossy(&said).into_owned())
}

#[tokio::test]
async fn each_alert_rule_fires_on_an_ill_instance_alone_and_promtool_accepts_rules_and_page() {
    let home = TempDir::new().expect("a temporary folder");
    let folder = home.path().join("files");
    operator(home.path()).files(&folder).await.expect("files");
    let rules = fs::read_to_string(folder.join("cloudphone.rules.yml")).expect("a file");
    let alerts: BTreeSet<_> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    let tried = CASES.lines().filter(|line| !line.starts_with(' ')).filter_map(|line| line.split(' ').next());
    assert_eq!(tried.filter(|alert| !alert.is_empty()).collect::<BTreeSet<_>>(), alerts, "each rule has a case");
    if Command::new("promtool").arg("--version").output().is_err() {
        return println!("left out: promtool is not installed (package prometheus)");
    }
    let [file, cases] = ["rules.yml", "cases.yml"].map(|name| home.path().join(name));
    fs::write(&file, &rules).expect("written");
    fs::write(&cases, promtool_cases()).expect("written");
    let [file, cases] = [&file, &cases].map(|path| path.to_str().expect("text"));
    assert_eq!(refuse(&["check", "rules", file], ""), None, "{rules}");
    assert_eq!(refuse(&["test", "rules", cases], ""), None, "{rules}");
    let page = page(&Program::start(WATCHED).await).await;
    assert_eq!(refuse(&["check", "metrics"], &page), None, "{page}");
}
