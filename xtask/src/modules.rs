//! The circles in which modules of one crate use each other.
//!
//! The children of a parent are its child modules and its own code; `lib.rs` and `main.rs` are the
//! own code of the root. The descendants of a child count as the child. A re-export (`pub use`)
//! does not count as a use, unless the parent's own code needs the name. Code that imports a name
//! through a re-export uses the module that defines it. Tests and the code inside of `quote!` do
//! not count.

use crate::files::list_files;
use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

type Names = Vec<String>;
type Modules = BTreeMap<Names, Module>;
type Graph = BTreeMap<Names, BTreeSet<Names>>;

/// The tokens before code that does not count.
const FOREIGN: [&[&str]; 2] = [&["quote", "!"], &["#", "(", "cfg", "(", "test", ")", ")", "mod", "tests"]];

#[derive(Default)]
struct Module {
    used: BTreeSet<Names>,
    /// By imported name.
    imports: BTreeMap<String, Names>,
}

/// Returns the modules of each parent that are in circles.
pub(crate) fn circles(package: &Path) -> Result<Vec<Vec<String>>> {
    let mut modules = Modules::new();
    for file in list_files(package)?.into_iter().filter(|file| file.starts_with("src")) {
        let mut path: Names =
            file.with_extension("").iter().skip(1).map(|part| part.to_string_lossy().into_owned()).collect();
        if file.extension().is_none_or(|extension| extension != "rs") || path.iter().any(|part| part == "tests") {
            continue;
        }
        path.retain(|part| part != "lib" && part != "main");
        let text = fs::read_to_string(package.join(&file))?;
        add(&mut modules, path, &text).with_context(|| file.display().to_string())?;
    }
    Ok(circles_of(&modules))
}

fn circles_of(modules: &Modules) -> Vec<Vec<String>> {
    let resolved = |module: &Module| module.used.iter().map(|path| resolve(modules, path)).collect();
    let uses: Graph = modules.iter().map(|(path, module)| (path.clone(), resolved(module))).collect();
    let parents: BTreeSet<&[String]> = uses.keys().filter_map(|path| Some(path.split_last()?.1)).collect();
    let shown = |path: &Names| if path.is_empty() { "the root".to_owned() } else { path.join("::") };
    let circle = |parent: &[String]| {
        let graph = below(parent, &uses);
        graph.keys().filter(|path| reach(&graph, path).contains(*path)).map(shown).collect::<Vec<_>>()
    };
    parents.into_iter().map(circle).filter(|circle| !circle.is_empty()).collect()
}

/// Includes `parent`'s own code.
fn below(parent: &[String], uses: &Graph) -> Graph {
    let place = |path: &Names| path.starts_with(parent).then(|| path[..path.len().min(parent.len() + 1)].to_vec());
    let mut graph = Graph::new();
    for (path, used) in uses {
        let Some(own) = place(path) else { continue };
        let others = used.iter().filter_map(place).filter(|other| *other != own);
        graph.entry(own.clone()).or_default().extend(others);
    }
    graph
}

fn reach<'g>(graph: &'g Graph, from: &'g Names) -> BTreeSet<&'g Names> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(next) = open.pop() {
        let used = graph.get(next).into_iter().flatten();
        open.extend(used.filter(|next| reached.insert(*next)));
    }
    reached
}

/// Returns the module that defines the item at `path`, through at most eight imports.
fn resolve(modules: &Modules, path: &[String]) -> Names {
    let mut path = path.to_vec();
    for _ in 0..8 {
        let (module, rest) = path.split_at(depth(modules, &path));
        let imported = rest.first().and_then(|name| modules.get(module)?.imports.get(name));
        let Some(target) = imported else { break };
        path = [target, &rest[1..]].concat();
    }
    path.truncate(depth(modules, &path));
    path
}

/// Counts the names that lead to a module.
fn depth(modules: &Modules, path: &[String]) -> usize {
    (1..=path.len()).rev().find(|depth| modules.contains_key(&path[..*depth])).unwrap_or(0)
}

fn add(modules: &mut Modules, own: Names, text: &str) -> Result<()> {
    let mut tokens = Vec::new();
    flatten(text.parse().map_err(|error| anyhow!("{error}"))?, &mut tokens);
    let module = modules.entry(own.clone()).or_default();
    let (mut exported, mut at) = (BTreeSet::new(), 0);
    while let Some(token) = tokens.get(at) {
        let before = at.checked_sub(1).map_or(";", |before| &tokens[before]);
        if token == "use" && before != "+" {
            let length = tokens[at..].iter().take_while(|token| *token != ";").count();
            for (name, path) in leaves(&own, &tokens[at + 1..at + length]) {
                if ["pub", ")"].contains(&before) {
                    exported.insert(name.clone());
                } else {
                    module.used.insert(path.clone());
                }
                module.imports.insert(name, path);
            }
            at += length;
        } else if is_word(token) && !["::", ".", "mod"].contains(&before) {
            let further = tokens[at + 1..]
                .chunks(2)
                .take_while(|pair| pair[0] == "::" && pair.get(1).is_some_and(|part| is_word(part)));
            let path: Names = [token].into_iter().chain(further.map(|pair| &pair[1])).cloned().collect();
            if path.len() > 1 || exported.contains(token) {
                module.used.insert(absolute(&own, &path));
            }
        }
        at += 1;
    }
    Ok(())
}

/// Appends the tokens without literals. All but braces become parentheses.
fn flatten(stream: TokenStream, tokens: &mut Names) {
    for tree in stream {
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = if group.delimiter() == Delimiter::Brace { ("{", "}") } else { ("(", ")") };
                let is_foreign = FOREIGN
                    .iter()
                    .any(|before| tokens.len() >= before.len() && tokens[tokens.len() - before.len()..] == **before);
                tokens.push(open.to_owned());
                if !is_foreign {
                    flatten(group.stream(), tokens);
                }
                tokens.push(close.to_owned());
            }
            TokenTree::Ident(name) => tokens.push(name.to_string().trim_start_matches("r#").to_owned()),
            TokenTree::Punct(sign) => match tokens.last_mut() {
                Some(last) if last == ":" && sign.as_char() == ':' => last.push(':'),
                _ => tokens.push(sign.as_char().to_string()),
            },
            TokenTree::Literal(_) => {}
        }
    }
}

/// Returns the names that an import brings, with their paths.
fn leaves(own: &[String], tree: &[String]) -> Vec<(String, Names)> {
    let (mut found, mut bases, mut path) = (Vec::new(), Vec::new(), Names::new());
    let (mut name, mut renames) = (None, false);
    let end = ",".to_owned();
    for token in tree.iter().chain([&end]) {
        match token.as_str() {
            "::" => {}
            "{" => bases.push(path.clone()),
            "," | "}" => {
                found.extend(name.take().map(|name| (name, absolute(own, &path))));
                path = bases.last().cloned().unwrap_or_default();
                if token == "}" {
                    bases.pop();
                }
            }
            "as" => renames = true,
            "self" if !path.is_empty() => name = path.last().cloned(),
            _ => {
                name = Some(token.clone());
                if !std::mem::take(&mut renames) {
                    path.push(token.clone());
                }
            }
        }
    }
    found
}

fn absolute(own: &[String], path: &[String]) -> Names {
    let ups = path.iter().take_while(|part| *part == "super").count();
    let base =
        if path.first().is_some_and(|first| first == "crate") { &[] } else { &own[..own.len().saturating_sub(ups)] };
    let rest = path.iter().filter(|part| !["crate", "self", "super"].contains(&part.as_str()));
    base.iter().chain(rest).cloned().collect()
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_planted(files: &[(&str, &str)]) -> String {
        let mut modules = Modules::new();
        for (path, text) in files {
            let path = path.split_terminator('/').map(str::to_owned).collect();
            add(&mut modules, path, text).expect("it is Rust");
        }
        circles_of(&modules).iter().map(|circle| circle.join(" ")).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn modules_that_use_each_other_are_a_circle_whatever_is_between_them() {
        let b = ("b", "pub(crate) struct B;");
        for (what, files, circles) in [
            ("siblings", &[("a", "use crate::b::B;"), ("b", "fn f() { super::a::g() }")][..], "a b"),
            ("below a sibling", &[("a", ""), ("a/c", "use crate::b::{B, D};"), ("b", "use crate::a::c;")], "a b"),
            ("a parent and its child", &[("a", "mod c;\nfn f() { c::g() }"), ("a/c", "use super::T;")], "a a::c"),
            ("its grandchild", &[("a", "use c::C;"), ("a/c", ""), ("a/c/d", "super::super::f()")], "a a::c"),
            (
                "a parent by a sibling",
                &[("a", "use c::C;"), ("a/c", "super::d::f()"), ("a/d", "super::T")],
                "a a::c a::d",
            ),
            ("the root", &[("", "mod a;\nuse a::A;"), ("a", "use crate::{Root, b::B};"), b], "the root a"),
            ("a re-export that is used", &[("", "pub use a::A;\nfn f() -> A {}"), ("a", "crate::g()")], "the root a"),
            (
                "what stands beneath tests in another file",
                &[("a", "\n#[cfg(test)]\nmod tests;\nuse c::C;"), ("a/c", "super::T")],
                "a a::c",
            ),
        ] {
            assert_eq!(find_planted(files), circles, "{what}");
        }
    }

    #[test]
    fn re_exports_and_tests_make_no_circle() {
        let b = ("b", "pub(crate) struct B;");
        for (what, files) in [
            ("one way", &[("a", "use crate::b::B;"), b][..]),
            ("a child that uses its parent", &[("a", "mod c;\npub(crate) struct T;"), ("a/c", "use super::T;")]),
            ("a re-export is a map", &[("", "pub use a::A;"), ("a", "crate::f()")]),
            ("it leads on", &[("", "use a::A;\npub use b::{B as D};"), ("a", "use crate::D;"), b]),
            ("so does an import", &[("", "use a::A;\nuse b::B;"), ("a", "super::B"), b]),
            (
                "and a second one",
                &[("", "pub use a::D;"), ("a", "use crate::b::B;\npub use crate::d::D;"), ("b", "crate::D"), ("d", "")],
            ),
            ("tests", &[("a", "use crate::b::B;"), ("b", "\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}")]),
            ("comments", &[("a", "use crate::b::B;"), ("b", "// as crate::a::A says")]),
            ("what is emitted", &[("", "fn f() { a::g() }"), ("a", "    quote! {\n        use super::*;\n    }\n")]),
            ("a module by its name alone", &[("", "pub use a::a;\nmod a;"), ("a", "crate::f()")]),
        ] {
            assert_eq!(find_planted(files), "", "{what}");
        }
    }
}
