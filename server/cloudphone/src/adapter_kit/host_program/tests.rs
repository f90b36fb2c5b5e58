//! Tests of host programs.

use super::*;
use rustix::process::geteuid;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;
use toolwarrant::Timestamp;

const TARGET: ProgramTarget<'_> = ProgramTarget { serial: "127.0.0.1:5555", name: Some("Anna; reboot") };

fn still() -> Clock {
    Clock::manual(Timestamp(1))
}

/// Writes a program in another process. One that this process had open for writing could not be
/// run.
fn write(folder: &TempDir, script: &str, arguments: &[&str]) -> HostProgram {
    let path = folder.path().join("program");
    let write = r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod 700 "$0""#;
    let written = std::process::Command::new("/bin/sh").arg("-c").arg(write).arg(&path).arg(script).status();
    assert!(written.unwrap().success());
    let words: Vec<_> = [path.to_str().unwrap()].iter().chain(arguments).map(|word| (*word).to_owned()).collect();
    HostProgram::parse(&words).unwrap()
}

async fn act(programs: &RunningPrograms, program: &HostProgram, not_after: Timestamp, clock: &Clock) -> Sent {
    let input = Secret::new(r#"{"password":"HUNTER2"}"#.to_owned());
    let task = TaskId::new(Timestamp(0), [1; 10]);
    programs.act(program, TARGET, (task, input), (Leave::until(not_after, clock), clock)).await
}

#[test]
fn a_program_is_an_absolute_path_of_an_executable_file_and_placeholders_are_whole_arguments() {
    let parse = |words: &[&str]| HostProgram::parse(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
    for words in [&[][..], &["sh"]] {
        assert_eq!(parse(words).unwrap_err(), NOT_ABSOLUTE);
    }
    for (missing, may_be_hidden) in [
        ("/nowhere", false),
        ("/etc/passwd", false),
        ("/bin", false),
        ("/home/nobody/restart", true),
        ("/homes", false),
    ] {
        let why = parse(&[missing]).unwrap_err();
        assert!(why.contains("is not a file that can be executed"), "{why}");
        assert_eq!(why.contains("sandbox"), may_be_hidden, "{missing}");
    }
    let folder = TempDir::new().unwrap();
    let program = write(&folder, "true", &[]);
    for (mode, is_allowed) in [(0o755, true), (0o757, false), (0o775, false), (0o500, true)] {
        fs::set_permissions(&program.path, Permissions::from_mode(mode)).unwrap();
        let parsed = parse(&[program.path.to_str().unwrap()]);
        assert_eq!((parsed.is_ok(), program.find_obstacle(TARGET).is_none()), (is_allowed, is_allowed), "{mode:o}");
        assert!(is_allowed || parsed.is_err_and(|why| why.contains("other users can change")));
    }
    for (mode, is_allowed) in [(0o777, false), (0o775, false), (0o1777, true), (0o700, true)] {
        fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
        let refused = program.find_obstacle(TARGET).unwrap_or_default();
        let names = refused.contains(&format!("`{}`", folder.path().display()));
        assert_eq!((refused.is_empty(), names), (is_allowed, !is_allowed), "{mode:o}: {refused}");
    }
    if geteuid().is_root() {
        std::os::unix::fs::chown(&program.path, Some(61_234), None).unwrap();
        assert!(program.find_obstacle(TARGET).is_some_and(|why| why.contains("must belong to root")));
    }
    for part in ["-s{serial}", "{name}s", "{nmae}"] {
        assert_eq!(parse(&["/bin/sh", part]).unwrap_err(), PLACEHOLDER, "{part}");
    }
    assert!(parse(&["/bin/sh", "{serial}", "{name}", "{{.State.Running}}"]).is_ok());
}

#[tokio::test]
async fn a_program_gets_its_arguments_whole_its_input_alone_and_a_clean_environment() {
    let folder = TempDir::new().unwrap();
    let script = "for word in \"$@\"; do echo \"<$word>\"; done; pwd; env | grep -v -e ^PWD -e ^_ -e ^SHLVL; cat";
    let program = write(&folder, script, &["{serial}", "a b", "{name}"]);
    let answer = program.ask(TARGET, &still()).await.unwrap();
    assert_eq!(answer, format!("<127.0.0.1:5555>\n<a b>\n<Anna; reboot>\n/\nPATH={PATH}\n"));
    let nameless = ProgramTarget { name: None, ..TARGET };
    assert!(program.ask(nameless, &still()).await.is_err());
    let told = folder.path().join("told");
    let program = write(&folder, &format!("cat > {}", told.display()), &[]);
    let clock = still();
    assert_eq!(act(&RunningPrograms::default(), &program, clock.now().plus(ACT_WITHIN), &clock).await, Sent::Ok);
    assert_eq!(fs::read_to_string(told).unwrap(), r#"{"password":"HUNTER2"}"#);
}

#[tokio::test]
async fn only_an_exit_status_is_a_report_and_a_program_that_did_not_start_did_nothing() {
    let (folder, clock, programs) = (TempDir::new().unwrap(), still(), RunningPrograms::default());
    let soon = clock.now().plus(ACT_WITHIN);
    let failed = act(&programs, &write(&folder, "exit 3", &[]), soon, &clock).await;
    assert!(matches!(failed, Sent::Err(_)), "{failed:?}");
    let killed = act(&programs, &write(&folder, "kill -9 $$", &[]), soon, &clock).await;
    assert!(matches!(killed, Sent::NoAnswer(_)), "{killed:?}");
    for (signal, is_the_sandbox) in [("TRAP", true), ("SYS", true), ("SEGV", false)] {
        let ended = act(&programs, &write(&folder, &format!("kill -{signal} $$"), &[]), soon, &clock).await;
        let why = ended.to_string();
        assert!(matches!(ended, Sent::NoAnswer(_)) && why.contains(&format!("SIG{signal}")), "{why}");
        assert_eq!(why.contains("the sandbox of its unit"), is_the_sandbox, "{why}");
    }
    let mark = folder.path().join("mark");
    let marks = write(&folder, &format!("touch {}", mark.display()), &[]);
    assert!(matches!(act(&programs, &marks, Timestamp(0), &clock).await, Sent::NotSent(_)));
    fs::remove_file(folder.path().join("program")).unwrap();
    assert!(matches!(act(&programs, &marks, soon, &clock).await, Sent::NotSent(_)));
    fs::write(folder.path().join("program"), "#!/nowhere\n").unwrap();
    fs::set_permissions(folder.path().join("program"), Permissions::from_mode(0o700)).unwrap();
    assert!(matches!(act(&programs, &marks, soon, &clock).await, Sent::NotSent(_)));
    assert!(!mark.exists());
}

#[test]
fn a_program_that_changes_something_goes_on_when_the_server_stops_and_one_that_answers_does_not() {
    let (folder, clock) = (TempDir::new().unwrap(), still());
    let at = |name: &str| folder.path().join(name);
    for (name, goes_on) in [("act", true), ("ask", false)] {
        let (begun, go, done) = (at(&format!("{name}-begun")), at(&format!("{name}-go")), at(&format!("{name}-done")));
        let script = format!(
            "exec 9> {done}; flock 9; echo > {begun}; until [ -e {go} ]; do sleep 0.01; done; echo done > {done}",
            done = done.display(),
            begun = begun.display(),
            go = go.display()
        );
        let program = write(&folder, &script, &[]);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let time = clock.clone();
        runtime.spawn(async move {
            match goes_on {
                true => drop(act(&RunningPrograms::default(), &program, time.now().plus(ACT_WITHIN), &time).await),
                false => drop(program.ask(TARGET, &time).await),
            }
        });
        while !begun.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(runtime);
        fs::write(go, "").unwrap();
        let ended = std::process::Command::new("flock").args(["--wait", "120"]).arg(&done).arg("true").status();
        assert!(ended.unwrap().success());
        assert_eq!(fs::read_to_string(done).unwrap(), if goes_on { "done\n" } else { "" }, "{name}");
    }
}

#[tokio::test]
async fn what_a_program_leaves_running_goes_on_and_can_print() {
    let (folder, clock) = (TempDir::new().unwrap(), still());
    let done = folder.path().join("done");
    // More than a pipe holds.
    let script = format!("(head -c 200000 /dev/zero >&2 && echo > {}) &", done.display());
    let program = write(&folder, &script, &[]);
    let sent = act(&RunningPrograms::default(), &program, clock.now().plus(ACT_WITHIN), &clock).await;
    assert_eq!(sent, Sent::Ok);
    while !done.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_program_that_does_not_end_is_pending_and_at_last_ended_with_its_group() {
    let (folder, clock) = (TempDir::new().unwrap(), Clock::manual(Timestamp(0)));
    let (held, programs) = (folder.path().join("held"), RunningPrograms::default());
    // The child holds a lock of the file until it ends.
    let script = format!("flock {} sleep 600 & echo > {}.begun; wait", held.display(), held.display());
    let program = write(&folder, &script, &[]);
    let task = TaskId::new(Timestamp(0), [1; 10]);
    let acting = act(&programs, &program, Timestamp(0), &clock);
    let moving = async {
        while !folder.path().join("held.begun").exists() || !held.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        clock.advance(PENDING_AFTER);
    };
    assert_eq!(tokio::join!(acting, moving).0, Sent::Pending(OPERATION.to_owned()));
    assert_eq!(programs.look_up(task), Sent::Pending(OPERATION.to_owned()));
    clock.advance(ACT_WITHIN);
    let end = loop {
        match programs.look_up(task) {
            Sent::Pending(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            end => break end,
        }
    };
    assert!(matches!(&end, Sent::NoAnswer(why) if why.as_str().contains("in time")), "{end:?}");
    assert!(Command::new("flock").args(["--wait", "120"]).arg(&held).arg("true").status().await.unwrap().success());
    assert!(matches!(programs.look_up(task), Sent::NoAnswer(why) if why.as_str() == LOST));
}
