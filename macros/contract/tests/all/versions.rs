//! The way from one release to the next.

use super::{Shop, assert_says, show};

#[test]
fn a_release_writes_the_record_and_moves_the_unreleased_part_of_the_changelog() {
    let shop = Shop::new();
    let head = "# Changelog\n\nWhat changes.\n\n";
    shop.write("CHANGELOG.md", &format!("{head}## Unreleased\n\n### Added\n\n- Printing.\n"));
    let missing = "not compared: there is no spec/released.toml: `contract release VERSION` makes the first release\n";
    assert_eq!(show(&shop.check()), format!("exit code 2\n{missing}"));
    let other = "exit code 1\n`[service]` in service.toml has version 1.0.0: write `version = \"1.0.1\"`\n";
    assert_eq!(show(&shop.release("1.0.1")), other);
    assert_eq!(shop.release("1.0").text, "`1.0` is not a version: write three numbers, such as `1.0.0`\n");
    assert!(!shop.path("spec/released.toml").exists());

    let done = "exit code 0\nreleased 1.0.0: commit spec/released.toml, CHANGELOG.md, and the files of `gen`\n";
    assert_eq!(show(&shop.release("1.0.0")), done);
    let released = shop.read("spec/released.toml");
    let (head_of_record, _) = released.split_once("\n\nerror.").expect("facts");
    insta::assert_snapshot!("head_of_a_released_record", head_of_record);
    let moved = "## Unreleased\n\n## 1.0.0 - 2026-11-23\n\n### Added\n\n- Printing.\n";
    assert_eq!(shop.read("CHANGELOG.md"), format!("{head}{moved}"));
    assert_says(&shop.check(), 0, "");
    let again = "exit code 1\n1.0.0 was released before: write a higher version under `[service]`\n";
    assert_eq!(show(&shop.release("1.0.0")), again);
}

#[test]
fn a_break_lands_with_an_acceptance_and_a_version_and_the_next_release_ends_the_acceptance() {
    let shop = Shop::release_first();
    shop.break_it();
    insta::assert_snapshot!("a_break", show(&shop.check()));
    let before = shop.read("spec/released.toml");
    assert_says(&shop.release("1.0.0"), 1, "error[break-not-accepted]");
    assert_eq!(shop.read("spec/released.toml"), before);
    let fact = "tool.print_page.permission";
    let unknown = shop.accept(&["tool.print_page.permision"], "Pages cost paper.");
    assert_says(&unknown, 1, "did you mean `tool.print_page.permission`?");
    assert_eq!(shop.accept(&[fact], " ").code, 1);
    assert!(!shop.path("spec/accepted.toml").exists());
    assert_says(&shop.accept(&[fact], "Pages cost \"paper\"."), 0, "");
    insta::assert_snapshot!("accepted", shop.read("spec/accepted.toml"));
    assert_says(&shop.check(), 1, "write `version = \"2.0.0\"`");
    shop.edit("spec/service.toml", "version = \"1.0.0\"", "version = \"2.0.0\"");
    insta::assert_snapshot!("an_accepted_break", show(&shop.check()));
    assert_eq!(shop.release("2.0.0").code, 0);
    assert!(!shop.path("spec/accepted.toml").exists());
    insta::assert_snapshot!("changelog", shop.read("CHANGELOG.md"));
    assert_eq!(shop.check().code, 0);
}

#[test]
fn a_release_updates_the_record_in_force_if_there_is_one() {
    let shop = Shop::new();
    shop.generate();
    assert_eq!(shop.release("1.0.0").code, 0);
    let in_force = shop.read("spec/generated/contract.toml");
    assert!(in_force.contains("record.released.version = \"1.0.0\""), "{in_force}");
    assert!(in_force.starts_with('#'));
}

#[test]
fn a_name_that_went_must_be_reserved() {
    let shop = Shop::release_first();
    shop.edit("spec/types.toml", "values.fine = \"In colour.\"\n", "values.neat = \"In colour.\"\n");
    shop.edit("spec/tools/printing.toml", "case.fine", "case.neat");
    assert_says(&shop.check(), 1, "help: add to reserved.toml: values = [\"fine\"]");
    shop.edit("spec/reserved.toml", "tools = ", "values = [\"fine\"]\ntools = ");
    let kept = shop.check();
    assert!(!kept.text.contains("name-not-reserved"), "{}", kept.text);
}

#[test]
fn a_release_keeps_former_forms_of_tasks_until_one_cannot_be_read_and_that_is_accepted() {
    let shop = Shop::release_first();
    let rename = |from: &str, to: &str| {
        shop.edit("spec/tools/trays.toml", &format!("{from} = {{"), &format!("{to} = {{"));
        shop.edit("spec/tools/trays.toml", &format!("{from} = 100"), &format!("{to} = 100"));
    };
    let version = |from: &str, to: &str| {
        shop.edit("spec/service.toml", &format!("version = \"{from}\""), &format!("version = \"{to}\""))
    };
    let forms = || {
        let released = shop.read("spec/released.toml");
        released
            .lines()
            .filter(|line| line.starts_with("stored.") && line.contains(".type = "))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(forms(), Vec::<String>::new(), "the tools' own forms are facts of their arguments");
    rename("sheets", "pages");
    shop.edit("spec/tools/trays.toml", "pages = {", "pages = { formerly = \"sheets\",");
    version("1.0.0", "2.0.0");
    // The rename makes `pages` required.
    assert_eq!(shop.accept(&["tool.fill_tray.argument.sheets"], "Renamed.").code, 0);
    assert_says(&shop.release("2.0.0"), 0, "");
    assert_eq!(
        forms(),
        ["stored.fill_tray.1.sheets.type = \"integer\"", "stored.fill_tray.1.tray_id.type = \"string\""]
    );

    shop.edit("spec/tools/trays.toml", " formerly = \"sheets\",", "");
    version("2.0.0", "3.0.0");
    assert_says(&shop.check(), 1, "contract accept form-unreadable stored.fill_tray.1");
    assert_eq!(shop.accept(&["stored.fill_tray.1"], "No task of 1.0 is in flight.").code, 0);
    assert_says(&shop.release("3.0.0"), 0, "");
    assert_eq!(forms(), Vec::<String>::new());
}

#[test]
fn a_change_requires_the_next_version_of_its_kind() {
    for (released, [wording, addition, breaking]) in
        [("0.3.4", ["0.3.5", "0.3.5", "0.4.0"]), ("1.3.4", ["1.3.5", "1.4.0", "2.0.0"])]
    {
        let shop = Shop::new();
        shop.edit("spec/service.toml", "version = \"1.0.0\"", &format!("version = \"{released}\""));
        assert_eq!(shop.release(released).code, 0);
        let requires = |version: &str| {
            let part = format!("{released} released, {released} in service.toml, {version} required");
            assert_says(&shop.check(), 1, &part);
        };
        shop.edit("spec/types.toml", "doc = \"Sheets of paper.\"", "doc = \"Sheets, of paper.\"");
        requires(wording);
        shop.edit("spec/service.toml", "requests_per_minute = 100", "requests_per_minute = 120");
        requires(addition);
        shop.break_it();
        requires(breaking);
    }
}

#[test]
fn the_report_says_of_a_change_what_it_does_and_which_number_it_raises() {
    type Edit<'e> = (&'e str, &'e str, &'e str);
    type Row<'e> = (&'e str, &'e [Edit<'e>], &'e [Edit<'e>], &'e str, &'e str);
    let [printing, jobs, printers] = ["tools/printing.toml", "tools/jobs.toml", "tools/printers.toml"];
    let renamed = [
        ("types.toml", "[type.Sheets]", "[type.Stack]"),
        ("tools/trays.toml", "type = \"Sheets\"", "type = \"Stack\""),
    ];
    let [lower, higher] = ["= 60", "= 120"].map(|to| [("service.toml", "= 100", to)]);
    let written = (printing, "optional = true, default = 2, ", "");
    let demanded = [written, (printing, "arguments = {}", "arguments = { copies = 2 }")];
    let read = (jobs, "optional = true, default = 20, ", "");
    let demanded_in_read = [read, (jobs, "arguments = { state", "arguments = { limit = 20, state")];
    let required = (printers, "\"boolean\", optional = true", "\"boolean\"");
    let required = [required, (printers, "{ printer_id = \"p-1\" }", "{ printer_id = \"p-1\", urgent = true }")];
    let eased = [(printers, "\"boolean\"", "\"boolean\", optional = true, default = false")];
    let other = [(jobs, "default = 20", "default = 10")];
    let rows: [Row<'_>; 9] = [
        ("1.0.0", &[], &renamed, "/v1/openapi.json", "Nothing that a client sees"),
        ("1.0.0", &[], &lower, "risky[budget-lowered]", "are refused"),
        ("1.0.0", &[], &higher, "created later", "Applications may send more"),
        ("1.0.0", &[], &demanded, "Calls without the argument are refused.", "does something else"),
        ("1.0.0", &[], &demanded_in_read, "breaking[argument-demanded]", "answers with something else"),
        ("1.0.0", &required, &eased, "argument-widened", "answers with something else"),
        ("1.0.0", &[], &other, "; a minor change of the version\n", "before 1.0"),
        ("0.3.1", &[], &other, "; a patch change of the version before 1.0\n", "a minor change"),
        ("0.3.1", &[], &demanded, "; a minor change of the version before 1.0\n", "a major change"),
    ];
    for (version, before, edits, says, never) in rows {
        let shop = Shop::new();
        let edit =
            |edits: &[Edit<'_>]| edits.iter().for_each(|(file, old, new)| shop.edit(&format!("spec/{file}"), old, new));
        edit(before);
        shop.edit("spec/service.toml", "version = \"1.0.0\"", &format!("version = \"{version}\""));
        assert_eq!(shop.release(version).code, 0);
        edit(edits);
        let said = shop.check().text;
        assert!(said.contains(says) && !said.contains(never), "{edits:?}: {said}");
    }
}

/// Nothing of such a contract can be released.
#[test]
fn a_contract_whose_texts_are_too_long_is_compared_and_told_which_to_shorten() {
    for (limit, says) in [
        ("description = 809", "help: shorten by 81: failures 313, task 230, notes 115, "),
        ("list = 9611", "help: shorten by 3: fill_tray 1522, print_page 1486, "),
        ("instructions = 1106", "help: shorten by 8: "),
        ("lead = 430", "help: shorten by 3: `phrase.refused` 156, "),
        ("argument = 20", "doc of `urgent` has 21 characters; clients take 20"),
    ] {
        let shop = Shop::release_first();
        shop.break_it();
        shop.edit("spec/service.toml", "[phrase]", &format!("[readers]\n{limit}\n\n[phrase]"));
        let check = shop.check();
        let is_both = check.text.contains("breaking[permission-raised]") && check.text.contains(says);
        assert!(check.code == 1 && is_both && !check.text.contains("not compared"), "{limit}: {}", check.text);
        assert_eq!(shop.release("1.0.0").code, 2);
    }
}
