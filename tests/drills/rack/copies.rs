//! Two phones that are copies of one image, as emulators are: which of them has which id, whatever
//! one of them shows after a start.

use super::{RackSite, options, restart, wait_until_running, wait_until_unknown};
use crate::harness::program::{Program, operate};
use kit::{PhoneFault, RackPhone};
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs root and Debian: cargo xtask drill rack"]
async fn no_copy_of_a_phone_takes_its_id_or_its_writes() {
    let site = RackSite::start(&options(), 4, 15).await;
    let mut phones: Vec<_> = site.phones.iter().filter(|(id, _)| id.starts_with("thirteen")).collect();
    phones.sort_by_key(|(id, _)| *id);
    let [lower, upper] = phones[..] else { panic!("two phones") };
    // The image has a mark of another server, and only the second phone shows it so far.
    upper.1.mark(IMAGE, "EMULATOR").expect("a mark");
    lower.1.mark("", "EMULATOR").expect("no mark");
    let mut program = site.serve().await;
    let list = async || {
        let config = site.flags()[1].clone();
        operate(&program.data, &format!("platform check thirteen --config {config}")).await.1
    };
    let marks = || [lower, upper].map(|(_, phone)| phone.read_mark().expect("a mark"));
    let [copy, image] = marks();
    assert!(image == IMAGE && copy != IMAGE && copy.len() == IMAGE.len(), "{copy} {image}");
    for (cell, shown) in [
        ("both show their own", [&*copy, IMAGE]),
        ("the copy starts again", [IMAGE, IMAGE]),
        ("both have lost it", ["", ""]),
        ("the copy has lost it", ["", IMAGE]),
        ("the first has the mark of the copy", [&*copy, &*copy]),
    ] {
        for ((_, phone), mark) in [lower, upper].into_iter().zip(shown) {
            phone.mark(mark, "EMULATOR").expect("a mark");
        }
        let said = list().await;
        assert_eq!(marks(), [&*copy, IMAGE], "{cell}: {said}");
        for phone in [lower, upper] {
            restart_only(&program, phone, [lower, upper]).await;
        }
        println!("{cell}: each phone has its id, and each restart was its own");
    }
    upper.1.begin(PhoneFault::Kill).expect("off");
    wait_until_unknown(&program, upper.0).await;
    lower.1.mark(IMAGE, "EMULATOR").expect("a mark");
    let said = list().await;
    assert!(said.contains("it is not clear which of two phones this is"), "{said}");
    let before = count(lower);
    for id in [lower.0, upper.0] {
        let refused = program.call("set_power", restart(id)).await.expect_err("no phone is certain");
        println!("the copy alone shows the mark of the first: {id}: {}", refused["message"]);
    }
    upper.1.end(PhoneFault::Kill).expect("on");
    wait_until_running(&program, site.phones.len()).await;
    assert_eq!((marks(), count(lower)), ([copy, IMAGE.to_owned()], before));
    restart_only(&program, lower, [lower, upper]).await;
    program.stop().await;
}

const IMAGE: &str = "00112233445566778899aabbccddeeff";

fn count((_, phone): (&String, &Arc<RackPhone>)) -> usize {
    phone.count_commands().expect("a journal")
}

async fn restart_only(program: &Program, phone: (&String, &Arc<RackPhone>), all: [(&String, &Arc<RackPhone>); 2]) {
    let before = all.map(count);
    let accepted = program.call("set_power", restart(phone.0)).await.expect("accepted");
    let task = program.task(&accepted["task_id"]).await;
    assert_eq!(task["status"], "success", "{task:#}");
    for (other, before) in all.into_iter().zip(before) {
        assert_eq!(count(other) - before, usize::from(other.0 == phone.0), "{task:#}");
    }
}
