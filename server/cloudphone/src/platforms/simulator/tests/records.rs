//! The journal: what it restores, refuses, and never contains.

use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use toolwarrant::base::SplitMix;

fn open(path: &Path, clock: &Clock) -> io::Result<Sim> {
    Sim::new(3, 40, clock.clone(), &[9; 32]).with_journal(path)
}

async fn everything(sim: &Sim) -> Vec<String> {
    let mut all = Vec::new();
    for index in 1..=40 {
        // A rotating proxy has no address that could be compared.
        let (state, flags, proxy, address, boot) = observe(sim, index).await;
        let address = address.filter(|_| sim.part(index) != Part::Rotating);
        all.push(format!("{:?} {}", (state, flags, proxy, address, boot), sim.deeds_on(&device_id(index))));
    }
    for number in 0..8 {
        let operations = sim.record().truth.numbers(request(number)).to_vec();
        all.push(format!("{:?}", sim.deeds(request(number))));
        for operation in operations {
            let said = sim.look_up(&device_id(1), request(number), Some(&format!("operation-{operation}"))).await;
            all.push(format!("{:?}", said.unwrap().unwrap()));
        }
    }
    all
}

async fn play(sim: &Sim, random: &mut SplitMix, count: u32) {
    for _ in 0..count {
        let what = ["set_proxy", "set_proxy 192.0.2.7", "clear_proxy", "boot", "shutdown", "restart"];
        let (number, index) = (random.below(8) as u8, random.below(40) as u32 + 1);
        let sent = send(sim, number, index, what[random.below(6) as usize]);
        tokio::select! { biased; _ = sent => {}, () = std::future::ready(()) => {} }
        wait(sim, random.below(6_000));
        observe(sim, index).await;
    }
}

#[tokio::test]
async fn the_journal_restores_the_state_at_any_later_time() {
    for seed in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("simulated.jsonl");
        let (clock, mut random) = (Clock::manual(NOW), SplitMix(seed));
        let mut sim = open(&path, &clock).unwrap();
        for _ in 0..3 {
            play(&sim, &mut random, 30).await;
            let again = open(&path, &clock).unwrap();
            let before = everything(&sim).await;
            assert_eq!(before, everything(&again).await, "seed {seed}");
            assert!(before.iter().any(|text| text.contains("Deed")));
            for _ in 0..4 {
                wait(&sim, 5_000);
                assert_eq!(everything(&sim).await, everything(&again).await, "seed {seed}");
            }
            sim = again;
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

fn fold(sim: &Sim) -> u64 {
    let record = &mut *sim.record();
    record.journal.fold(&mut record.truth, sim.clock.now()).unwrap();
    let Journal::File { length, .. } = record.journal else { panic!("a file") };
    length
}

#[tokio::test]
async fn a_folded_journal_restores_the_same_phones_and_every_recent_command() {
    for seed in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("simulated.jsonl");
        let (clock, mut random) = (Clock::manual(NOW), SplitMix(seed));
        let mut sim = open(&path, &clock).unwrap();
        for hours in [0, 1, 20, 0] {
            play(&sim, &mut random, 30).await;
            let before = everything(&sim).await;
            fold(&sim);
            assert!(everything(&sim).await == before, "seed {seed}");
            play(&sim, &mut random, 5).await;
            let again = open(&path, &clock).unwrap();
            for _ in 0..4 {
                assert_eq!(everything(&sim).await, everything(&again).await, "seed {seed}");
                wait(&sim, 5_000);
            }
            Sim::examine(&path).unwrap();
            wait(&sim, hours * 3_600_000);
            sim = again;
        }
        wait(&sim, 25 * 3_600_000);
        let before = everything(&sim).await;
        fold(&sim);
        assert!(everything(&sim).await[..40] == before[..40], "seed {seed}");
        assert_eq!(sim.record().truth.operation(0), None);
        assert!(everything(&sim).await == everything(&open(&path, &clock).unwrap()).await, "seed {seed}");
        assert!(!folder.path().join("simulated.jsonl.new").exists());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn a_journal_does_not_grow_for_ever_and_its_old_operations_are_forgotten_with_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("simulated.jsonl");
    let clock = Clock::manual(NOW);
    let sim = open(&path, &clock).unwrap();
    let mut lengths = Vec::new();
    for _ in 0..3 {
        for _ in 0..50 {
            send(&sim, 1, 1, "restart").await;
            wait(&sim, 10_000);
        }
        wait(&sim, 25 * 3_600_000);
        let deeds = sim.deeds_on(&device_id(1));
        lengths.push(fold(&sim));
        assert_eq!((sim.deeds_on(&device_id(1)), sim.record().truth.operation(0)), (deeds, None));
    }
    assert!(lengths.iter().all(|length| *length < 500), "{lengths:?}");
    send(&sim, 2, 1, "restart").await;
    let again = open(&path, &clock).unwrap();
    assert_eq!(again.record().truth.numbers(request(2)), [150]);
    assert!(sim.record().truth.numbers(request(1)).is_empty());
}

#[tokio::test]
async fn a_restart_forgets_what_was_switched_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("simulated.jsonl");
    let sim = open(&path, &Clock::manual(NOW)).unwrap();
    let before = everything(&sim).await;
    screens::touch_switch(&sim, 10).await;
    assert!(everything(&sim).await != before);
    for _ in 0..2 {
        assert!(everything(&open(&path, &Clock::manual(NOW)).unwrap()).await == before);
        fold(&sim);
        Sim::examine(&path).unwrap();
    }
}

#[tokio::test]
async fn a_journal_that_cannot_be_folded_is_as_good_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("simulated.jsonl");
    let sim = open(&path, &Clock::manual(NOW)).unwrap();
    send(&sim, 1, 1, "restart").await;
    fs::create_dir(folder.path().join("simulated.jsonl.new")).unwrap();
    if let Journal::File { fold_at, .. } = &mut sim.record().journal {
        *fold_at = 0;
    }
    assert!(matches!(send(&sim, 1, 2, "restart").await, Sent::Pending(_)));
    let again = open(&path, &Clock::manual(NOW)).unwrap();
    assert_eq!(again.record().truth.numbers(request(1)).len(), 2);
}

#[tokio::test]
async fn a_journal_that_is_cut_anywhere_opens_with_what_is_whole_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("simulated.jsonl");
    let clock = Clock::manual(NOW);
    play(&open(&path, &clock).unwrap(), &mut SplitMix(1), 6).await;
    let whole = fs::read(&path).unwrap();
    let lines = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
    for length in 0..=whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let sim = open(&path, &clock).unwrap();
        let kept = lines(&whole[..length]).saturating_sub(1);
        assert!(sim.record().truth.operation(kept).is_none(), "cut at {length}");
        assert!(kept == 0 || sim.record().truth.operation(kept - 1).is_some(), "cut at {length}");
        send(&sim, 1, 1, "restart").await;
        let text = fs::read(&path).unwrap();
        assert!(lines(&text) == kept + 2 && text.ends_with(b"\n"), "cut at {length}");
        let again = open(&path, &clock).unwrap();
        for number in 0..=kept + 1 {
            let [sim, again] = [&sim, &again].map(|sim| sim.record().truth.operation(number).cloned());
            assert!(sim == again && sim.is_some() == (number <= kept), "cut at {length}");
        }
    }
}

#[tokio::test]
async fn the_journal_has_no_password_and_no_user_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("simulated.jsonl");
    let sim = open(&path, &Clock::manual(NOW)).unwrap();
    send(&sim, 1, 1, "set_proxy").await;
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("proxy.example.com"));
    for text in [text, format!("{sim:?}")] {
        assert!(!text.contains("MARVIN") && !text.contains("HUNTER2"), "{text}");
    }
}

#[tokio::test]
async fn a_file_that_is_not_a_journal_of_this_fleet_is_refused_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("simulated.jsonl");
    let clock = Clock::manual(NOW);
    send(&open(&path, &clock).unwrap(), 1, 1, "restart").await;
    let good = fs::read_to_string(&path).unwrap();
    let line = good.lines().nth(1).unwrap();
    for (text, why) in [
        (good.replace(r#""seed":3"#, r#""seed":4"#), "was made with seed 4, not 3"),
        (good.replace(r#"_phones":1"#, r#"_phones":3"#), "has version 3"),
        (good.replace(r#"_phones":1"#, r#"_phones":2"#), "line 2: unknown field"),
        ("a diary".to_owned(), "is not a journal"),
        (format!("{line}\n"), "is not a journal"),
        (good.replace(r#""phone":1"#, r#""phone":0"#), "line 2: no phone has index 0"),
        (good.replace(r#""restart""#, r#""repaint""#), "line 2: unknown variant `repaint`"),
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
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("simulated.jsonl");
    let sim = open(&path, &Clock::manual(NOW)).unwrap();
    let length = fs::metadata(&path).unwrap().len();
    let read_only = fs::File::open(&path).unwrap();
    let good = std::mem::replace(
        &mut sim.record().journal,
        Journal::File { path: path.clone(), file: read_only, seed: 3, length, fold_at: u64::MAX },
    );
    assert!(matches!(send(&sim, 1, 1, "restart").await, Sent::NotSent(_)));
    sim.record().journal = good;
    assert!(matches!(send(&sim, 2, 1, "restart").await, Sent::Pending(_)));
    wait(&sim, 5_000);
    assert_eq!([1, 2].map(|number| sim.deeds(request(number)).len()), [0, 1]);
}
