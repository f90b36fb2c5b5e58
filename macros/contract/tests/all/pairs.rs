//! Random pairs of contracts: verdicts agree with what schemas admit and lists contain.
//!
//! `PAIRS=100000 cargo test --release --package toolwarrant-contract pairs` compares that many.

use super::cases::flat;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write;
use std::fs;
use tempfile::TempDir;
use toolwarrant_gate::{Audience, ContractChange, Severity, compare};
use toolwarrant_reader::model::{Contract, ToolSpec};
use toolwarrant_reader::{ContractRecord, input_schema, load, type_schema};

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % sides
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len())].clone()
    }
}

#[derive(Clone, Default)]
struct Draft {
    permissions: BTreeMap<String, BTreeSet<String>>,
    types: BTreeMap<String, String>,
    tools: BTreeMap<String, Tool>,
}

#[derive(Clone, Default)]
struct Tool {
    permission: String,
    /// True if it is optional.
    arguments: BTreeMap<String, (String, bool)>,
    /// True if it may be null.
    fields: BTreeMap<String, (String, bool)>,
}

impl Draft {
    fn new(dice: &mut Dice) -> Self {
        let mut draft = Self::default();
        (0..4).for_each(|n| draft.change_type(dice, n));
        for n in 0..3 {
            draft.permissions.insert(format!("p{n}"), BTreeSet::new());
        }
        for name in ["ta", "tb", "tc"] {
            draft.tools.insert(name.to_owned(), Tool { permission: format!("p{}", dice.roll(3)), ..Tool::default() });
        }
        (0..4).for_each(|_| draft.change_permission(dice));
        (0..12).for_each(|_| draft.change_tool(dice));
        draft
    }

    fn change_type(&mut self, dice: &mut Dice, n: usize) {
        let (least, most) = (dice.roll(3), 3 + dice.roll(3));
        let text = match dice.roll(4) {
            0 => format!("kind = \"integer\"\nmin = {least}\nmax = {most}"),
            1 => {
                let values: Vec<_> = ["aa", "bb", "cc"].into_iter().filter(|_| dice.roll(3) > 0).collect();
                let values = if values.is_empty() { vec!["aa"] } else { values };
                let values: Vec<_> = values.iter().map(|value| format!("values.{value} = \"One.\"")).collect();
                format!("kind = \"enum\"\n{}", values.join("\n"))
            }
            _ => {
                let prefix = dice.pick(&["", "", "a", "ab"]);
                let charset = dice.pick(&["", "a-b", "a-c", "b", "abc"]);
                let charset = if charset.is_empty() { String::new() } else { format!("\ncharset = \"{charset}\"") };
                format!("kind = \"string\"\nmin_length = {least}\nmax_length = {most}\nprefix = \"{prefix}\"{charset}")
            }
        };
        self.types.insert(format!("N{n}"), text);
    }

    fn change_permission(&mut self, dice: &mut Dice) {
        let (low, high) = (dice.roll(4), dice.roll(4));
        let [low, high] = [low.min(high), low.max(high)].map(|n| format!("p{n}"));
        match dice.roll(4) {
            0 if self.tools.values().all(|tool| tool.permission != low) => {
                self.permissions.remove(&low);
                self.permissions.values_mut().for_each(|implied| {
                    implied.remove(&low);
                });
            }
            1 => drop(self.permissions.entry(low).or_default()),
            _ if low != high && self.permissions.contains_key(&high) && self.permissions.contains_key(&low) => {
                let implied = self.permissions.entry(low).or_default();
                if !implied.remove(&high) {
                    implied.insert(high);
                }
            }
            _ => {}
        }
    }

    fn change_tool(&mut self, dice: &mut Dice) {
        let name = dice.pick(&["ta", "tb", "tc"]);
        let Some(tool) = self.tools.get_mut(name) else { return };
        let ty = dice.pick(&["N0", "N1", "N2", "N3", "[N0]", "[N1]", "string", "integer", "boolean"]).to_owned();
        let (parts, name) = match dice.roll(2) {
            0 => (&mut tool.arguments, dice.pick(&["aa", "ab", "ac"])),
            _ => (&mut tool.fields, dice.pick(&["fa", "fb", "fc"])),
        };
        if parts.remove(name).is_none() || dice.roll(2) == 0 {
            parts.insert(name.to_owned(), (ty, dice.roll(2) == 0));
        }
    }

    fn change_list(&mut self, dice: &mut Dice) {
        let name = dice.pick(&["ta", "tb", "tc"]).to_owned();
        let known: Vec<_> = self.permissions.keys().cloned().collect();
        if dice.roll(4) == 0 && self.tools.len() > 1 && self.tools.contains_key(&name) {
            self.tools.remove(&name);
        } else {
            self.tools.entry(name).or_default().permission = dice.pick(&known);
        }
    }

    fn contract(&self) -> Contract {
        let folder = TempDir::new().expect("a folder");
        let mut service = "[service]\nname = \"service-x\"\ntitle = \"X\"\nversion = \"0.1.0\"\ndoc = \"A service.\"\ntools = [\"all\"]\n".to_owned();
        for (name, implied) in &self.permissions {
            let implied: Vec<_> = implied.iter().map(|name| format!("\"{name}\"")).collect();
            let _ = write!(service, "[permission.{name}]\nimplies = [{}]\ndoc = \"Some.\"\n", implied.join(", "));
        }
        let mut types: String =
            self.types.iter().map(|(name, text)| format!("[type.{name}]\n{text}\ndoc = \"Some.\"\n")).collect();
        let mut tools = String::new();
        for (name, Tool { permission, arguments, fields }) in &self.tools {
            let _ = write!(
                tools,
                "[[tool]]\nname = \"{name}\"\ntitle = \"X\"\npermission = \"{permission}\"\neffect = \"read\"\nresult = \"R{name}\"\nsummary = \"Reads.\"\nuse_when = \"at noon.\"\n[tool.args]\n"
            );
            for (name, (ty, optional)) in arguments {
                let _ = writeln!(tools, "{name} = {{ type = \"{ty}\", optional = {optional}, doc = \"Some.\" }}");
            }
            let _ = write!(
                types,
                "[type.R{name}]\nkind = \"object\"\ndoc = \"Some.\"\nfields.one = {{ type = \"boolean\", doc = \"Some.\" }}\n"
            );
            // A result says who wrote a text, unless its type bounds the characters.
            let bounded = |ty: &str| {
                self.types
                    .get(ty.trim_matches(['[', ']']))
                    .is_none_or(|text| !text.contains("string") || text.contains("charset"))
            };
            for (name, (ty, nullable)) in fields.iter().filter(|(_, (ty, _))| bounded(ty)) {
                let author = if ty == "string" { ", untrusted = true" } else { "" };
                let _ = writeln!(
                    types,
                    "fields.{name} = {{ type = \"{ty}\", nullable = {nullable}{author}, doc = \"Some, null if none.\" }}"
                );
            }
        }
        fs::create_dir(folder.path().join("tools")).expect("a folder");
        for (file, text) in [("service.toml", &service), ("types.toml", &types), ("tools/all.toml", &tools)] {
            fs::write(folder.path().join(file), text).expect("a file");
        }
        load(folder.path()).unwrap_or_else(|report| panic!("{report}\n{service}{types}{tools}"))
    }
}

/// Returns the values among some of each form that a schema admits: at the bounds of every type
/// that a draft can have, and beyond.
fn samples(schema: &Value) -> Vec<Value> {
    let lengths = |prefix: &'static str, c: &'static str| (0..=6).map(move |n| json!(prefix.to_owned() + &c.repeat(n)));
    let texts = ["", "a", "ab"].into_iter().flat_map(|prefix| ["a", "b", "c", "~"].map(|c| lengths(prefix, c)));
    let texts = texts.flatten().chain([json!("~".repeat(12))]);
    let most = (1_i64 << 53) - 1;
    let others = (0..=6).chain([-most, most]).map(Value::from).chain([json!(true), Value::Null]);
    let single: Vec<_> = texts.chain(others).collect();
    let lists: Vec<_> = single.iter().map(|item| json!([item])).collect();
    let validator = jsonschema::validator_for(schema).expect("a schema");
    single.into_iter().chain(lists).filter(|sample| validator.is_valid(sample)).collect()
}

/// Returns a value that the old schema admits and the new one does not.
fn find_refused(old: &Value, new: &Value) -> Option<Value> {
    let validator = jsonschema::validator_for(new).expect("a schema");
    samples(old).into_iter().find(|sample| !validator.is_valid(sample))
}

fn find_refused_call(old: &ToolSpec, new: &ToolSpec) -> Option<Value> {
    let (old_schema, new_schema) = (input_schema(old), input_schema(new));
    let requires =
        |schema: &Value, name: &str| schema["required"].as_array().is_some_and(|all| all.contains(&json!(name)));
    if new.args.iter().any(|arg| requires(&new_schema, &arg.name) && !requires(&old_schema, &arg.name)) {
        return Some(json!({}));
    }
    old.args.iter().find_map(|arg| {
        let name = &arg.name;
        let Some(schema) = new_schema["properties"].get(name) else { return Some(json!({name: "any"})) };
        find_refused(&old_schema["properties"][name], schema).map(|refused| json!({name: refused}))
    })
}

fn answers_unforeseen(old: &ToolSpec, new: &ToolSpec) -> bool {
    let (old_schema, new_schema) = (type_schema(&old.result), type_schema(&new.result));
    let fields =
        |schema: &Value| schema["properties"].as_object().cloned().into_iter().flatten().collect::<BTreeMap<_, _>>();
    let (old_fields, new_fields) = (fields(&old_schema), fields(&new_schema));
    old_fields.keys().ne(new_fields.keys())
        || new_fields.iter().any(|(name, schema)| find_refused(schema, &old_fields[name]).is_some())
}

fn worst(changes: &[ContractChange], audience: Audience) -> Severity {
    flat(changes).iter().map(|change| change.verdict(audience)).max().unwrap_or(Severity::Compatible)
}

/// Returns `PAIRS` seeds, and two pairs that were judged wrongly once.
fn seeds() -> impl Iterator<Item = u64> {
    let pairs = env::var("PAIRS").ok().and_then(|pairs| pairs.parse().ok()).unwrap_or(150);
    (0..pairs).chain([10_103, 33_227])
}

#[test]
fn verdicts_on_arguments_and_results_agree_with_what_the_schemas_admit() {
    let (mut breaking, mut risky) = (0, 0);
    for seed in seeds() {
        let mut dice = Dice(seed);
        let old = Draft::new(&mut dice);
        let mut new = old.clone();
        for _ in 0..=dice.roll(3) {
            match dice.roll(2) {
                0 => {
                    let n = dice.roll(4);
                    new.change_type(&mut dice, n);
                }
                _ => new.change_tool(&mut dice),
            }
        }
        let (old_contract, new_contract) = (old.contract(), new.contract());
        let changes = compare(&ContractRecord::of(&old_contract), &ContractRecord::of(&new_contract));
        let (mut refused, mut unforeseen) = (None, false);
        for (before, after) in old_contract.tools().zip(new_contract.tools()) {
            refused = refused.or(find_refused_call(before, after));
            unforeseen |= answers_unforeseen(before, after);
        }
        let verdict = worst(&changes, Audience::Client);
        let found: Vec<_> = flat(&changes).iter().map(|change| (change.rule.id.as_str(), &change.message)).collect();
        if refused.is_some() {
            assert_eq!(verdict, Severity::Breaking, "seed {seed}: {refused:?} is refused: {found:#?}");
            breaking += 1;
        } else if unforeseen {
            assert!(verdict > Severity::Compatible, "seed {seed}: an answer is unforeseen: {found:#?}");
            risky += 1;
        } else {
            assert_eq!(verdict, Severity::Compatible, "seed {seed}: nothing is refused or unforeseen: {found:#?}");
        }
    }
    assert!(breaking > 0 && risky > 0);
}

#[test]
fn verdicts_for_applications_agree_with_the_lists_of_permissions() {
    let (mut breaking, mut harmless_renames) = (0, 0);
    for seed in seeds() {
        let mut dice = Dice(seed);
        let old = Draft::new(&mut dice);
        let mut new = old.clone();
        for _ in 0..=dice.roll(3) {
            match dice.roll(2) {
                0 => new.change_list(&mut dice),
                _ => new.change_permission(&mut dice),
            }
        }
        if seed % 2 == 0
            && let Some(tool) = new.tools.remove("tc")
        {
            new.tools.insert("td".to_owned(), tool);
        }
        let (old_contract, new_contract) = (old.contract(), new.contract());
        let record = |contract| {
            let mut record = ContractRecord::of(contract);
            // Each tool has a type of its own, so that none could have another name.
            record.facts.retain(|key, _| !key.ends_with(".result"));
            record
        };
        let changes = compare(&record(&old_contract), &record(&new_contract));
        let list = |contract: &Contract, held: &BTreeSet<&str>| -> BTreeSet<String> {
            let may = |tool: &&ToolSpec| contract.callers(tool).any(|caller| held.contains(caller));
            contract.tools().filter(may).map(|tool| tool.name.clone()).collect()
        };
        let known: Vec<_> = old_contract.permissions.iter().map(|permission| permission.name.as_str()).collect();
        let opens = |contract: &Contract, tool: &str| -> Vec<bool> {
            let common = known.iter().filter(|name| new.permissions.contains_key(**name));
            common.map(|name| list(contract, &BTreeSet::from([*name])).contains(tool)).collect()
        };
        let is_renamed = |(name, tool): &(&String, &Tool)| {
            let came = new.tools.iter().filter(|(other, _)| !old.tools.contains_key(*other));
            let is_same = |(other, it): (&String, &Tool)| {
                (&it.permission, &it.arguments) == (&tool.permission, &tool.arguments)
                    && opens(&old_contract, name) == opens(&new_contract, other)
            };
            !new.tools.contains_key(*name) && came.into_iter().any(is_same)
        };
        let renamed: Vec<&String> = old.tools.iter().filter(is_renamed).map(|(name, _)| name).collect();
        let kept = |held: &BTreeSet<&str>| {
            list(&old_contract, held).into_iter().filter(|tool| !renamed.contains(&tool)).collect::<BTreeSet<_>>()
        };
        let sets = (0..1_usize << known.len()).map(|bits| -> BTreeSet<&str> {
            (0..).zip(&known).filter(|(n, _)| bits >> n & 1 == 1).map(|(_, name)| *name).collect()
        });
        let gone = known.iter().any(|name| new_contract.permissions.iter().all(|other| other.name != *name));
        let shrinks = gone || sets.into_iter().any(|held| !kept(&held).is_subset(&list(&new_contract, &held)));
        let found: Vec<_> = flat(&changes).iter().map(|change| (change.rule.id.as_str(), &change.message)).collect();
        let is_breaking = worst(&changes, Audience::Application) == Severity::Breaking;
        assert_eq!(is_breaking, shrinks, "seed {seed}: {found:#?}");
        breaking += usize::from(shrinks);
        harmless_renames += usize::from(!shrinks && !renamed.is_empty());
    }
    assert!(breaking > 0 && harmless_renames > 0);
}
