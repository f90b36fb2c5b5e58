//! Backups taken while the program is under load and gets killed, and the state that each of them
//! restores.

use super::audit::{commands, read_task_ids};
use super::load::Load;
use super::{Options, options};
use crate::harness::Key;
use crate::harness::program::{Program, json_of, key_of, operate};
use crate::harness::writes::database;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

struct Backup {
    file: PathBuf,
    told: Vec<String>,
    /// Revoked before the backup, and after it.
    revoked: [Key; 2],
}

#[derive(Default)]
struct BackupFigures {
    kills: u64,
    backups: u64,
    /// The program was killed before the file existed.
    unfinished: u64,
    tasks: u64,
    lost: u64,
    in_flight: u64,
    unsound: u64,
    sent_again: u64,
    keys_alive: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: cargo xtask drill crash"]
async fn no_backup_under_kills_loses_repeats_or_revives_anything() {
    let Options { kills, seed, .. } = options();
    backups_under_kills(kills, 4, seed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_between_kills_restores_to_all_that_was_acknowledged_and_to_no_live_key() {
    backups_under_kills(4, 2, 1).await;
}

/// Takes a backup in every `each`th life; the kill may interrupt every fourth backup.
async fn backups_under_kills(kills: u64, each: u64, seed: u64) {
    let place = TempDir::new().expect("a temporary folder");
    let mut load = Load::begin(seed).await;
    let mut figures = BackupFigures { kills, ..BackupFigures::default() };
    for kill in 1..=kills {
        if kill % each != 0 {
            load.kill().await;
            continue;
        }
        let file = place.path().join(format!("{kill}.tar"));
        let hasty = kill / each % 4 == 3;
        let taken = load.kill_after(async |data, told| take(data, told, file, hasty).await).await;
        if taken.file.exists() {
            figures.backups += 1;
            restore_and_check(&taken, &load.data, &mut figures).await;
            fs::remove_file(&taken.file).expect("removed");
        } else {
            assert!(hasty, "the backup was not taken");
            figures.unfinished += 1;
        }
    }
    let BackupFigures { kills, backups, unfinished, tasks, lost, in_flight, unsound, sent_again, keys_alive } = figures;
    for (what, figure) in [
        ("ended by kill -9", kills),
        ("backups restored", backups),
        ("backups prevented by a kill", unfinished),
        ("tasks acknowledged before their backup", tasks),
        ("of these, missing after the restore", lost),
        ("tasks in flight in a backup", in_flight),
        ("restored folders in which the doctor finds faults", unsound),
        ("commands sent by a restored folder", sent_again),
        ("keys alive without the operator's confirmation", keys_alive),
    ] {
        println!("{figure:>8}  {what}");
    }
    assert!(backups > 0 && lost + unsound + sent_again + keys_alive == 0);
}

async fn take(data: &Path, told: Vec<Value>, file: PathBuf, hasty: bool) -> Backup {
    let mut revoked = Vec::new();
    for _ in 0..2 {
        revoked.push(key_of(data, "load").await);
    }
    let [before, after] = <[Key; 2]>::try_from(revoked).expect("two");
    operate(data, &format!("key revoke {}", before.id)).await;
    let told = told.iter().filter_map(|task| task["task_id"].as_str().map(str::to_owned)).collect();
    let line = format!("backup {}", file.display());
    if hasty {
        let data = data.to_owned();
        let taking = tokio::spawn(async move { operate(&data, &line).await });
        let _ = tokio::time::timeout(Duration::from_millis(60), taking).await;
    } else {
        let (code, said) = operate(data, &line).await;
        assert_eq!(code, 0, "{said}");
    }
    operate(data, &format!("key revoke {}", after.id)).await;
    Backup { file, told, revoked: [before, after] }
}

async fn restore_and_check(backup: &Backup, from: &Path, figures: &mut BackupFigures) {
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let data = home.path().join("data");
    let line = format!("restore {} --master-key {}", backup.file.display(), from.join("master.key").display());
    let said = json_of(&data, &line).await;
    figures.in_flight += said["ended_as_timeout"].as_u64().expect("a number");
    figures.unsound += u64::from(operate(&data, "doctor").await.0 != 0);
    let known = read_task_ids(&data);
    figures.tasks += backup.told.len() as u64;
    figures.lost += backup.told.iter().filter(|id| !known.contains(*id)).count() as u64;

    let sent = || commands(&data).values().map(Vec::len).sum::<usize>();
    let before = sent();
    let mut program = Program::start_at(home.clone(), &["--sim-devices", "1000000"]).await;
    for key in &backup.revoked {
        figures.keys_alive += u64::from(program.status(key).await != 401);
    }
    program.stop().await;
    figures.sent_again += (sent() - before) as u64;
    let alive = "SELECT count(latest_verifier) FROM api_key";
    figures.keys_alive += database(&data).query_row(alive, [], |row| row.get::<_, u32>(0)).map_or(1, u64::from);
    let open = "SELECT count(*) FROM task WHERE terminal = 0";
    let open = database(&data).query_row(open, [], |row| row.get::<_, u32>(0)).expect("a number");
    assert_eq!(open, 0, "tasks in flight are ended by the restore");
}
