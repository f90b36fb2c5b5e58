//! The program `toolwarrant` as an author runs it: in the folder of a package, or elsewhere with
//! `--spec`.

use super::Shop;
use std::path::Path;
use std::process::Command;

/// Runs a command line in a folder. Returns the exit code, and what it wrote to each stream.
fn run(folder: &Path, line: &str) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolwarrant"));
    let output = command.args(line.split(' ')).current_dir(folder).output().expect("the program runs");
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    (output.status.code().expect("an exit"), out, err)
}

#[test]
fn it_works_on_the_contract_of_the_folder_and_its_exit_code_says_what_is_to_do() {
    let shop = Shop::new();
    let here = |line| run(shop.home.path(), line);
    let (code, _, why) = here("gen --check");
    assert!(code == 1 && why.starts_with("toolwarrant: stale: spec/generated/"), "{code}: {why}");
    for line in ["gen", "gen --check"] {
        let (code, said, _) = here(line);
        assert!(code == 0 && said.starts_with("9 tools, 18 files: "), "{line}: {said}");
    }
    let (code, said, _) = here("expand");
    assert!(code == 0 && said.starts_with("use ::toolwarrant::runtime as rt;\n"), "{said}");
    let (code, said, _) = here("contract check");
    assert!(code == 2 && said.starts_with("not compared: there is no spec/released.toml"), "{code}: {said}");
    assert_eq!(here("contract release 1.0.0").0, 0);
    shop.break_it();
    assert_eq!(here("contract check").0, 1);
    let elsewhere = shop.path("spec/tools");
    assert_eq!(run(&elsewhere, "contract --spec .. check").0, 1);
    let missing = (1, String::new(), "toolwarrant: there is no folder spec; choose another with --spec\n".to_owned());
    assert_eq!(run(&elsewhere, "gen"), missing);
    let (code, said, why) = here("contract verify --against spec/released.toml http://127.0.0.1:1");
    assert!(code == 2 && said.is_empty() && why.starts_with("toolwarrant: not compared: http://127.0.0.1:1/"), "{why}");
    let (code, said, _) = here("contract verify --against spec/released.toml --json http://127.0.0.1:1");
    assert!(code == 2 && said.contains("\"compared\": false") && said.contains("\"code\": \"unreachable\""), "{said}");
}
