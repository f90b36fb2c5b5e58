//! Tests of the parser of callgrind's dumps. A bench target does not run tests.

#[path = "../callgrind.rs"]
mod callgrind;

use callgrind::{Did, Profile};

const DUMP: &str = "\
events: Ir

fl=(1) serve.rs
fn=(7) app::serve
12 100
+1 20
cfn=(9) malloc
calls=3 0
* 900
cfn=(11) sha2::compress'2
calls=1 0
14 5000
-2 1
fn=(9)
0 300
fn=(11)
0 5000
";

#[test]
fn a_function_has_its_own_instructions_and_not_those_of_what_it_calls() {
    let profile = Profile::read(DUMP);
    let largest = [("sha2::compress", 5_000.0, 1.0), ("malloc", 300.0, 3.0), ("app::serve", 121.0, 0.0)];
    let largest = largest.map(|(name, instructions, calls)| (name, Did { instructions, calls }));
    assert_eq!(profile.largest(3), largest);
    assert_eq!(profile.sum(|name| name.starts_with("sha2::")), largest[0].1);
    assert_eq!(profile.sum(|_| true).instructions, 5_421.0);
}

#[test]
fn the_difference_of_two_runs_is_divided_by_the_requests() {
    let longer = format!("{DUMP}fn=(13) free\n0 50\n");
    let beyond = Profile::read(&longer).beyond(&Profile::read(DUMP), 10.0);
    assert_eq!(beyond.largest(1), [("free", Did { instructions: 5.0, calls: 0.0 })]);
    assert_eq!(Profile::default().and(&beyond).and(&beyond).sum(|_| true).instructions, 10.0);
    assert_eq!(Profile::default().beyond(&Profile::read(DUMP), 1.0).sum(|name| name == "malloc").calls, -3.0);
}
