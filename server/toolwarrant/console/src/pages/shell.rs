//! The shell around every page: the box that finds ids, the menu, and who looks. The page before a
//! session has a box for the code.

use crate::answer::words;
use crate::assets;
use crate::markup::Markup;
use crate::rendered::Rendered;
use crate::visit::ConsoleVisit;
use askama::Template;
use sha2::{Digest, Sha256};
use toolwarrant_base::hex;
use toolwarrant_core::act::Role;

#[derive(Template)]
#[template(path = "pages/shell.html")]
pub(crate) struct Shell<'a> {
    service: &'a str,
    rendered: &'a Rendered,
    main: Markup,
    menu: Vec<(String, String, bool)>,
    name: &'a str,
    role: &'static str,
    command: String,
    asset: &'static [String; 3],
}

#[derive(Template)]
#[template(path = "pages/in.html")]
pub(crate) struct SignIn<'a> {
    pub(crate) service: &'a str,
    pub(crate) message: &'a str,
    /// The path that was asked for.
    pub(crate) to: &'a str,
    pub(crate) code: &'a str,
    pub(crate) user: &'a str,
    pub(crate) asset: &'static [String; 3],
}

/// The part of a page that a window replaces.
#[derive(Template)]
#[template(path = "pages/main.html")]
pub(crate) struct Main<'a> {
    rendered: &'a Rendered,
    tag: String,
    /// The milliseconds until a window asks again.
    pause: u128,
}

impl<'a> Main<'a> {
    pub(crate) fn of(rendered: &'a Rendered) -> Self {
        Self { rendered, tag: tag(rendered), pause: rendered.live.unwrap_or_default().as_millis() }
    }
}

/// Returns a name for this state of the page.
pub(crate) fn tag(rendered: &Rendered) -> String {
    match rendered.live {
        Some(_) => hex::encode(&Sha256::digest(rendered.main.as_str())[..16]),
        None => String::new(),
    }
}

impl<'a> Shell<'a> {
    pub(crate) fn of(visit: &'a ConsoleVisit<'a>, path: &str, rendered: &'a Rendered) -> Self {
        let catalogue = visit.console.catalogue;
        let fleets =
            catalogue.resource_names().into_iter().map(|name| (format!("/fleet/{name}"), words(&format!("{name}s"))));
        let overview = [("/".to_owned(), "Overview".to_owned())].into_iter();
        let pages = ["tasks", "applications", "keys", "audit", "acts", "doctor"];
        let pages = pages.map(|name| (format!("/{name}"), words(name)));
        let menu = overview.chain(fleets).chain(pages);
        let path = if path == "/refunds" { "/tasks" } else { path };
        let is_here = |page: &str| path == page || page != "/" && path.starts_with(&format!("{page}/"));
        let operator = &visit.visitor.operator;
        let role = match operator.role {
            Role::View => "view",
            Role::Operate | Role::Owner => "operate",
        };
        let words = rendered.words.iter().filter(|word| *word != "--").map(|word| quote(word));
        let command = words.fold(String::new(), |line, word| line + " " + &word);
        let command = if command.is_empty() { command } else { format!("{}{command}", visit.receiver.program()) };
        Self {
            service: catalogue.service.title,
            rendered,
            main: Markup::of(&Main::of(rendered)),
            menu: menu.map(|(page, name)| (page.clone(), name, is_here(&page))).collect(),
            name: &operator.name,
            role,
            command,
            asset: assets::paths(),
        }
    }
}

fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,:/@*".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
