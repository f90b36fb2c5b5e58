//! Compares the expansion of the print shop's contract with golden files, one for each concern, and
//! that of the forms which `forms` alone has.

use super::Shop;
use proc_macro2::{Span, TokenStream, TokenTree};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use syn::{File, Item, ItemMod, LitStr, parse_quote};
use toolwarrant_codegen::{concerns, expand};
use toolwarrant_contract::format_code;
use toolwarrant_reader::model::Contract;
use toolwarrant_reader::{ContractRecord, load, openapi, sentences};

/// Reviewers do not read longer files.
const LONGEST: usize = 350;

/// A longer line is a whole document as a literal, which is reviewed in its own generated file.
const WIDEST: usize = 3_000;

#[test]
fn the_contracts_of_the_print_shop_and_the_forms_expand_to_this() {
    let (print_shop, forms) = (print_shop(), forms());
    let own = |concern: &&'static str| ["types", "ids", "args", "tools"].contains(concern);
    let forms = concerns(&forms).into_iter().filter(|(concern, _)| own(concern));
    let forms = forms.map(|(concern, code)| (format!("forms_{concern}"), code));
    for (concern, code) in
        concerns(&print_shop).map(|(concern, code)| (concern.to_owned(), code)).into_iter().chain(forms)
    {
        let repeats = ["errors", "own_errors", "dispatch"].contains(&&*concern);
        let text = if repeats { one_of_each_form(code) } else { format_code(code) };
        assert!(text.lines().count() <= LONGEST, "{concern} has {} lines", text.lines().count());
        let text: String = text.lines().map(|line| cut(line) + "\n").collect();
        insta::with_settings!({ snapshot_path => "expansion", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(concern, text);
        });
    }
}

/// Leaves out items that differ from a former one only in names and values, which the service's
/// code and its generated documents hold.
fn one_of_each_form(code: TokenStream) -> String {
    let mut file: File = syn::parse2(code).expect("code");
    let (all, mut forms) = (file.clone(), BTreeSet::new());
    let mut is_of_another_form = |item: &Item| {
        let alone = File { items: vec![item.clone()], ..all.clone() };
        forms.insert(form(prettyplease::unparse(&alone).parse().expect("code")))
    };
    file.items.retain_mut(|item| match item {
        Item::Mod(ItemMod { content: Some((_, items)), .. }) => {
            items.retain(&mut is_of_another_form);
            true
        }
        item => is_of_another_form(item),
    });
    prettyplease::unparse(&file)
}

fn form(code: TokenStream) -> String {
    let of_token = |token| match token {
        TokenTree::Group(group) => format!("({})", form(group.stream())),
        TokenTree::Punct(mark) => mark.to_string(),
        TokenTree::Ident(_) | TokenTree::Literal(_) => "_".to_owned(),
    };
    code.into_iter().map(of_token).collect()
}

fn cut(line: &str) -> String {
    match line.chars().count() {
        all if all > WIDEST => line.chars().take(120).collect::<String>() + " ... cut here",
        _ => line.to_owned(),
    }
}

fn print_shop() -> Contract {
    contract("services/print_shop/spec")
}

fn forms() -> Contract {
    contract("contract/forms")
}

fn contract(folder: &str) -> Contract {
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(folder);
    load(&spec).unwrap_or_else(|report| panic!("{report}"))
}

#[test]
fn the_document_of_v1_has_open_arguments_and_closed_results() {
    let document = openapi(&forms());
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["Edit"]["required"], json!(["oldText", "newText"]));
    assert_eq!(
        (&schemas["Edit"]["additionalProperties"], &schemas["Note"]["additionalProperties"]),
        (&json!(null), &json!(false))
    );
    let required = schemas["Note"]["required"].as_array().expect("names");
    assert!(schemas["Note"]["properties"]["altered"].is_object() && !required.contains(&json!("altered")));
    assert_eq!(schemas["Weights"]["additionalProperties"], json!({"$ref": "#/components/schemas/Weight"}));
    let body = &document["paths"]["/v1/notes/{note_id}"]["put"]["requestBody"]["content"]["application/json"]["schema"];
    let icon = json!([{"$ref": "#/components/schemas/Lines"}, {"type": "null"}]);
    assert_eq!(body["properties"]["icon"]["anyOf"], icon, "{body}");
}

/// An abbreviation ends no sentence, and a longer word names no tool.
#[test]
fn a_sentence_needs_the_permission_of_each_tool_that_it_names() {
    let contract = print_shop();
    let needs = |name: &str| {
        let tool = contract.tools().find(|tool| tool.name == name).expect("a tool of the shop");
        1_u64 << tool.permission.index
    };
    let text = "Wait 1.5 s. Look, e.g. with get_printer! Print with print_page? It has no print_pages.";
    let told: Vec<_> = sentences(&contract, text).into_iter().map(|told| (told.text, told.needs)).collect();
    let expected = [
        ("Wait 1.5 s.", 0),
        ("Look, e.g. with get_printer!", needs("get_printer")),
        ("Print with print_page?", needs("print_page")),
        ("It has no print_pages.", 0),
    ];
    assert_eq!(told, expected.map(|(text, needs)| (text.to_owned(), needs)));
}

fn expand_in(package: &Path, folder: &str) -> String {
    let folder = LitStr::new(folder, Span::call_site());
    expand(&folder, package, &parse_quote!(::toolwarrant::runtime)).to_string()
}

#[test]
fn a_missing_folder_is_reported_with_its_whole_path_and_as_relative() {
    let code = expand_in(Path::new("/package"), "nowhere/spec");
    assert!(code.contains("cannot read the contract's folder `/package/nowhere/spec`"), "{code}");
    assert!(code.contains("`nowhere/spec` is relative to the folder of this crate's Cargo.toml"), "{code}");
}

#[test]
fn every_file_that_was_read_is_tracked_with_and_without_mistakes_and_a_mistake_leaves_the_names() {
    let shop = Shop::new();
    let is_tracked = |file: &str| expand_in(shop.home.path(), "spec").contains(&format!("\"/spec/{file}\""));
    let files = ["service.toml", "types.toml", "errors.toml", "reserved.toml", "tools/jobs.toml"];
    assert!(files.into_iter().all(is_tracked) && !is_tracked("released.toml"));
    // The document of the contract depends on the released record.
    assert_eq!(shop.release("1.0.0").code, 0);
    assert!(is_tracked("released.toml"));
    shop.edit("spec/types.toml", "type = \"[Mode]\"", "type = \"[Mood]\"");
    assert!(files.into_iter().all(is_tracked));
    let code = expand_in(shop.home.path(), "spec");
    assert_eq!(code.matches("compile_error").count(), 1, "{code}");
    let names = code.split("pub use self :: {").nth(1).expect("the names stand there");
    for name in ["CATALOGUE", "Command", "GetPrinterArgs", "PrinterCapability", "PrinterId", "PrintersTools"] {
        assert!(names.contains(name), "{name} is not in {names}");
    }
}

#[test]
fn the_document_has_the_changes_since_the_release_and_a_broken_release_is_an_error_of_the_compiler() {
    let shop = Shop::new();
    let says = |words: &[&str]| {
        let code = expand_in(shop.home.path(), "spec");
        assert!(words.iter().all(|word| code.contains(word)), "{words:?}: {code}");
    };
    says(&[r#"\"since\":null,\"changes\":null"#]);
    let mut released = ContractRecord::of(&shop.contract());
    released.head.insert("version".to_owned(), "0.9.0".into());
    shop.write("spec/released.toml", &released.text());
    says(&[r#"\"since\":\"0.9.0\",\"changes\":[]"#]);
    released.facts.insert("tool.get_printer.permission".to_owned(), "print".into());
    shop.write("spec/released.toml", &released.text());
    says(&[r#"\"fact\":\"tool.get_printer.permission\",\"old\":\"print\",\"new\":\"look\""#, r#"\"operator\":"#]);
    shop.write("spec/released.toml", "<<<<<<< ours\n");
    says(&["compile_error", "released.toml: line 1 is a conflict mark", "const CONTRACT"]);
}
