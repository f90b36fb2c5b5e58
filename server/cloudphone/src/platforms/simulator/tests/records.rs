//! The journal: what it restores, forgets, refuses, and never contains.

use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tempfile::TempDir;

const DAY: u64 = 24 * 3_600_000;

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("simulated.jsonl");
    (folder, path)
}

fn open(path: &Path, clock: &Clock) -> io::Result<Sim> {
    Sim::new(3, 40, clock.clone(), &[9; 32]).with_journal(path)
}

fn list_commands(sim: &Sim) -> BTreeMap<u32, Vec<TakenCommand>> {
    let phones = sim.phones();
    let taken = phones.written.iter().filter(|(_, phone)| !phone.taken.is_empty());
    taken.map(|(index, phone)| (*index, phone.taken.clone())).collect()
}

async fn observe_all(sim: &Sim) -> Vec<ObservedPhone> {
    let mut all = Vec::new();
    for index in (1..40).filter(|index| fleet::draw(3, *index).0 != Part::Rotating) {
        all.push(observe(sim, index).await);
    }
    all
}

#[tokio::test]
async fn a_restart_restores_every_command_without_its_login_and_forgets_what_was_switched_by_hand() {
    let ((_folder, path), clock, mut random) = (place(), Clock::manual(NOW), SplitMix(1));
    let sim = open(&path, &clock).unwrap();
    play(&sim, &mut random, 200, 6_000).await;
    let (again, shown) = (open(&path, &clock).unwrap(), observe_all(&sim).await);
    assert_eq!((list_commands(&sim), &shown), (list_commands(&again), &observe_all(&again).await));
    let runs_with_proxy = |phone: &DeviceSnapshot| phone.proxy.is_some() && phone.state() == DeviceState::Running;
    let index = (1..40).find(|index| runs_with_proxy(&read(&again, *index))).unwrap();
    screens::touch_switch(&again, index).await;
    assert!(observe_all(&again).await != shown);
    assert_eq!(observe_all(&open(&path, &clock).unwrap()).await, shown);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("proxy.example.com") && text.lines().count() > 100);
    for text in [text, format!("{:?}", list_commands(&sim))] {
        assert!(!text.contains("MARVIN") && !text.contains("HUNTER2"), "{text}");
    }
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    Sim::examine(&path).unwrap();
}

#[tokio::test]
async fn a_long_journal_loses_what_no_task_can_ask_about_and_no_phone_changes_by_that() {
    for seed in 0..10 {
        let ((folder, path), clock, mut random) = (place(), Clock::manual(NOW), SplitMix(seed));
        let sim = open(&path, &clock).unwrap();
        play(&sim, &mut random, 200, 6_000).await;
        wait(&sim, DAY);
        play(&sim, &mut random, 40, 500).await;
        let (before, all) = (observe_all(&sim).await, list_commands(&sim));
        if seed > 4 {
            fs::create_dir(folder.path().join("simulated.jsonl.new")).unwrap();
        }
        sim.phones_mut().journal.as_mut().unwrap().length_max = 0;
        let yesterday = clock.now().minus(Duration::from_millis(DAY));
        assert!(matches!(send(&sim, 1, 40, "restart").await, Sent::Pending(_)));
        assert_eq!(observe_all(&sim).await, before, "seed {seed}");
        for (index, kept) in list_commands(&sim).iter().filter(|(index, _)| **index != 40) {
            let (old, recent): (Vec<_>, Vec<_>) = kept.iter().partition(|taken| taken.at < yesterday);
            let all: Vec<_> = all[index].iter().filter(|taken| taken.at >= yesterday).collect();
            assert!(recent == all && old.len() <= 2, "{index}: {old:?}");
        }
        let (again, lines) = (open(&path, &clock).unwrap(), fs::read_to_string(&path).unwrap().lines().count());
        assert_eq!(observe_all(&again).await, before, "seed {seed}");
        // A journal that cannot be written again is as good as before.
        assert!(
            if seed > 4 { lines > 200 } else { lines < 160 && list_commands(&again) == list_commands(&sim) },
            "{lines}"
        );
        wait(&sim, DAY);
        let (before, length) = (observe_all(&sim).await, fs::metadata(&path).unwrap().len());
        send(&sim, 1, 40, "boot").await;
        assert!(fs::metadata(&path).unwrap().len() > length, "it is written again after a day at the earliest");
        assert_eq!(
            (observe_all(&sim).await, fs::metadata(&path).unwrap().permissions().mode() & 0o777),
            (before, 0o600)
        );
    }
}

#[tokio::test]
async fn a_journal_that_is_cut_anywhere_opens_with_what_is_whole_and_goes_on() {
    let ((_folder, path), clock) = (place(), Clock::manual(NOW));
    let sim = open(&path, &clock).unwrap();
    for index in [1, 2, 3, 5] {
        send(&sim, 1, index, "boot").await;
    }
    let whole = fs::read(&path).unwrap();
    let lines = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
    for length in whole.iter().position(|byte| *byte == b'\n').unwrap() + 1..=whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let sim = open(&path, &clock).unwrap();
        let kept = lines(&whole[..length]) - 1;
        assert!(list_commands(&sim).len() == kept && fs::read(&path).unwrap().ends_with(b"\n"), "cut at {length}");
        send(&sim, 1, 40, "boot").await;
        let text = fs::read(&path).unwrap();
        assert!(lines(&text) == kept + 2 && text.ends_with(b"\n"), "cut at {length}");
        assert_eq!(list_commands(&open(&path, &clock).unwrap()), list_commands(&sim), "cut at {length}");
    }
}

#[tokio::test]
async fn a_file_that_is_not_a_journal_of_this_fleet_is_refused_and_not_changed() {
    let ((_folder, path), clock) = (place(), Clock::manual(NOW));
    send(&open(&path, &clock).unwrap(), 1, 1, "restart").await;
    let good = fs::read_to_string(&path).unwrap();
    let line = good.lines().nth(1).unwrap();
    for (text, why) in [
        (good.replace(r#"phones":3"#, r#"phones":4"#), "was made with seed 4, not 3"),
        ("a diary".to_owned(), "is not a journal"),
        (format!("{line}\n"), "is not a journal"),
        (good.replace("phone-0000001", "phone-0000000"), "line 2: it has no simulated phone"),
        (good.replace(r#""restart""#, r#""repaint""#), "line 2: its command cannot be read"),
        (good.replace("task_", "cask_"), "line 2: its request is not a task"),
        (format!("{good}{line} {line}\n{line}\n"), "is damaged in line 3: trailing characters"),
        (format!("{good}{{\n"), "is damaged in line 3: EOF while parsing"),
    ] {
        fs::write(&path, &text).unwrap();
        let error = open(&path, &clock).map(drop).unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("simulated.jsonl") && !error.contains("column"), "{error}");
        assert!(Sim::examine(&path).is_err() || why.contains("seed"), "{why}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{why}");
    }
}

#[tokio::test]
async fn a_command_that_the_journal_cannot_store_is_not_sent_and_has_no_effect() {
    let (_folder, path) = place();
    let sim = open(&path, &Clock::manual(NOW)).unwrap();
    let swap = |file| std::mem::replace(&mut sim.phones_mut().journal.as_mut().unwrap().file, file);
    let good = swap(fs::File::open(&path).unwrap());
    assert!(matches!(send(&sim, 1, 1, "restart").await, Sent::NotSent(_)));
    swap(good);
    assert!(matches!(send(&sim, 2, 1, "boot").await, Sent::Pending(_)));
    wait(&sim, 5_000);
    assert_eq!(sim.deeds_of(&device_id(1)), [command(1, "boot")]);
}
