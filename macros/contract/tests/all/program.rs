//! The program `toolwarrant` as an author runs it: in the folder of a package, or elsewhere with
//! `--spec`.

use super::Shop;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use toolwarrant_gate::{digest, document};
use toolwarrant_reader::ContractRecord;

const HOSTILE: &str =
    "x\n::error::forged\r\n  ::add-mask::forged ##[error]forged ##vso[task.complete]\u{2028}\u{1b}[1m";

fn run(folder: &Path, line: &str) -> (i32, String, String) {
    run_words(folder, &line.split(' ').collect::<Vec<_>>())
}

fn run_words(folder: &Path, words: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolwarrant"));
    let output = command.args(words).current_dir(folder).output().expect("the program runs");
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

fn serve(document: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let answer =
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{document}", document.len());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1_024]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

/// A build server takes a line that begins with `::` as a command, also after spaces, and `##[` and
/// `##vso[` anywhere in a line.
#[test]
fn no_text_from_outside_makes_a_line_of_the_output_or_a_command_of_a_build_server() {
    let shop = Shop::release_first();
    let sound = ContractRecord::parse(&shop.read("spec/released.toml")).expect("a record");
    let spoil = |head: &str, fact: &str| {
        let mut record = sound.clone();
        record.head.insert(head.to_owned(), HOSTILE.into());
        record.facts.insert(fact.to_owned(), HOSTILE.into());
        let digest = digest(&record);
        record.head.insert("digest".to_owned(), digest.into());
        record
    };
    let texts = spoil("version", "tool.get_tray.summary");
    let documents =
        [&texts, &spoil("service", "tool.get_tray.title")].map(|record| serve(&document(record, None).to_string()));
    let mut broken = document(&texts, None);
    broken["facts"]["\"\\n::error::forged\""] = json!(1);
    let broken = serve(&broken.to_string());
    let mut many = sound.clone();
    many.facts.extend((0..20_000).map(|n| (format!("text.t{n}"), json!("T."))));
    let many = serve(&document(&many, None).to_string());
    let [other, undated] = [texts.text(), spoil("date", "tool.get_tray.summary").text()];
    let accepted = format!("[[accepted]]\nrule = \"tool-removed\"\nfact = {0}\nreason = {0}\n", json!(HOSTILE));
    let quoted = json!(HOSTILE).to_string().replace("\u{2028}", "\\u2028");
    let odd = format!("[type.{quoted}]\nkind = \"enum\"\ndoc = \"D.\" # ##[error]forged\n[{quoted}]\nx = 1\n");
    let verify = |url: &str| ["contract", "verify", "--against", "spec/released.toml", url].map(str::to_owned).to_vec();
    let check = |more: &[&str]| [&["contract", "check"], more].concat().into_iter().map(str::to_owned).collect();
    let types = shop.read("spec/types.toml") + &odd;
    let rows: [(&str, &str, Vec<String>, i32); 12] = [
        ("", "", verify(&documents[0]), 1),
        ("", "", verify(&documents[1]), 2),
        ("", "", verify(&broken), 2),
        ("", "", verify(&many), 2),
        ("other.toml", &other, check(&["--against", "other.toml"]), 2),
        ("other.toml", &undated, check(&["--against", "other.toml"]), 1),
        ("spec/accepted.toml", &accepted, check(&[]), 1),
        ("spec/types.toml", &types, check(&[]), 2),
        ("spec/tools/a\n::error::forged.toml", "[[tool]]\n", check(&[]), 2),
        ("", "", check(&["--base", HOSTILE]), 2),
        ("", "", ["contract", "explain", HOSTILE].map(str::to_owned).to_vec(), 1),
        ("other.toml", "record.format = 1\n##[error]forged", check(&["--against", "other.toml"]), 2),
    ];
    for (file, text, words, code) in rows {
        let shop = Shop::new();
        shop.write("spec/released.toml", &sound.text());
        if !file.is_empty() {
            shop.write(file, text);
        }
        let forms: &[&[&str]] = match &*words[1] {
            "check" => &[&[], &["--json"]],
            "verify" => &[&[], &["--json"]],
            _ => &[&[]],
        };
        for form in forms {
            let words: Vec<&str> = words.iter().map(String::as_str).chain(form.iter().copied()).collect();
            let (found, out, err) = run_words(shop.home.path(), &words);
            let said = out + &err;
            assert_eq!(found, code, "{words:?}: {said}");
            for line in said.split(['\n', '\r', '\u{2028}']) {
                // `:::` before a path is of a report, and no command.
                let is_command = line.trim_start().strip_prefix("::").is_some_and(|rest| !rest.starts_with(':'));
                let is_forged = is_command || ["##[", "##vso[", "\u{1b}"].iter().any(|mark| line.contains(mark));
                assert!(!is_forged && !line.trim_start().starts_with("forged"), "{words:?}: {line:?} in {said}");
            }
        }
    }
}
