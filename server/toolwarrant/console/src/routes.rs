//! The path of a request becomes a page. Nothing but the door, the stylesheet, the script and the
//! icon is answered without a session.

use crate::answer::encode;
use crate::assets;
use crate::door::PAGES_A_MINUTE;
use crate::lists::LISTS;
use crate::markup::Markup;
use crate::pages::{Main, Shell, SignIn, tag};
use crate::rendered::Rendered;
use crate::state::ConsoleState;
use crate::visit::ConsoleVisit;
use std::sync::Arc;
use toolwarrant_base::BoxFuture;
use toolwarrant_http::people::{PeopleSite, SiteAnswer, SiteRequest};
use toolwarrant_operator::socket::CommandReceiver;

pub(crate) struct ConsoleSite {
    pub(crate) console: Arc<ConsoleState>,
    pub(crate) receiver: Arc<dyn CommandReceiver>,
}

const NO_GROUP: &str = "`id -G` of the server's machine names no group of yours that may look here at present.";

const ENDED: &str = "There is no session, or it has ended. The command `console` makes a link.";

impl PeopleSite for ConsoleSite {
    fn is_at(&self, host: &str) -> bool {
        self.console.is_at(host)
    }

    fn cookie(&self) -> &'static str {
        "console"
    }

    fn has_session(&self, cookie: &str) -> bool {
        self.console.door.admit(cookie, false).is_some()
    }

    fn answer<'a>(&'a self, request: SiteRequest<'a>) -> BoxFuture<'a, SiteAnswer> {
        Box::pin(self.route(request))
    }
}

const NO_CODE: (&str, &str) = ("", "");

fn see(path: &str, cookie: Option<String>) -> SiteAnswer {
    SiteAnswer::See { path: path.to_owned(), cookie }
}

fn page(status: u16, html: &Markup) -> SiteAnswer {
    SiteAnswer::Page { status, html: html.as_str().to_owned() }
}

/// Returns true for a path of this site. Two slashes begin another host, and browsers leave out
/// some control characters.
fn is_own(to: &str) -> bool {
    to.starts_with('/') && !to[1..].starts_with(['/', '\\']) && to.bytes().all(|byte| byte.is_ascii_graphic())
}

impl ConsoleSite {
    /// Asks for a code or, if there is one, if the browser goes on as its user.
    fn door(&self, status: u16, message: &str, to: &str, (code, user): (&str, &str)) -> SiteAnswer {
        let service = self.console.catalogue.service.title;
        page(status, &Markup::of(&SignIn { service, message, to, code, user, asset: assets::paths() }))
    }

    fn enter(&self, fields: &[(String, String)], cookie: Option<&str>) -> SiteAnswer {
        let door = &self.console.door;
        let field = |name: &str| fields.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.trim());
        let (code, to) = (field("code"), field("to"));
        let user = door.user_of(code).unwrap_or_default();
        // The session can have ended since.
        let here = cookie.and_then(|cookie| cookie.split_once('.')).map(|(_, user)| user);
        match here.filter(|here| !user.is_empty() && *here != encode(&user) && field("user") != user) {
            Some(here) => self.door(200, &format!("You are {here} here. Go on as {user}?"), to, (code, &user)),
            None => match door.enter(code) {
                Some(secret) => see(if is_own(to) { to } else { "/" }, Some(secret)),
                None => self.door(403, "This code does not work: it works once, for a minute.", to, NO_CODE),
            },
        }
    }

    async fn route(&self, request: SiteRequest<'_>) -> SiteAnswer {
        let SiteRequest { path, target, parts, query, form, cookie, shown } = request;
        let (door, to) = (&self.console.door, if form.is_none() { target } else { "" });
        match (path, &form) {
            ("/in", None) => return self.door(200, "", "", NO_CODE),
            ("/in", Some(fields)) => return self.enter(fields, cookie),
            _ => {}
        }
        if let Some(file) = assets::find(path).filter(|_| form.is_none()) {
            return file;
        }
        let Some(mut visitor) = cookie.and_then(|cookie| door.admit(cookie, shown.is_none())) else {
            return self.door(401, ENDED, to, NO_CODE);
        };
        if let ("/out", Some(_)) = (path, &form) {
            door.end(Some(&visitor.session));
            return see("/in", Some(String::new()));
        }
        let Some(_turn) = door.take_turn(&visitor) else {
            let html = format!("Too many at once, or over {PAGES_A_MINUTE} pages a minute. Try again in a moment.");
            return SiteAnswer::Page { status: 429, html };
        };
        let Some(role) = self.console.groups.role_of(visitor.operator.uid).await else {
            return self.door(401, NO_GROUP, to, NO_CODE);
        };
        visitor.operator.role = visitor.operator.role.min(role);
        let parts: Vec<_> = parts.iter().map(String::as_str).collect();
        let visit =
            |query| ConsoleVisit { console: &self.console, receiver: &*self.receiver, visitor: &visitor, query };
        match (&parts[..], &form) {
            (["act", group, name], Some(fields)) => {
                let visit = visit(fields);
                self.shell(&visit, path, &visit.act(group, name).await)
            }
            (["find"], fields) => {
                let visit = visit(fields.as_ref().unwrap_or(&query));
                match visit.find(visit.query_value("id").unwrap_or_default().trim()).await {
                    Ok(path) => see(&path, None),
                    Err(rendered) => self.shell(&visit, path, &rendered),
                }
            }
            (_, Some(_)) => self.shell(&visit(&[]), path, &Rendered::missing()),
            (_, None) => {
                let visit = visit(&query);
                let rendered = visit.page(&parts).await;
                match shown {
                    None => self.shell(&visit, path, &rendered),
                    Some(shown) if shown == tag(&rendered) => SiteAnswer::Nothing,
                    Some(_) => page(rendered.status, &Markup::of(&Main::of(&rendered))),
                }
            }
        }
    }

    fn shell(&self, visit: &ConsoleVisit<'_>, path: &str, rendered: &Rendered) -> SiteAnswer {
        page(rendered.status, &Markup::of(&Shell::of(visit, path, rendered)))
    }
}

impl ConsoleVisit<'_> {
    /// Returns the page at a path.
    async fn page(&self, parts: &[&str]) -> Rendered {
        let is_fleet = |resource: &str| self.console.catalogue.resource(resource).is_some();
        match parts {
            [""] => self.overview().await,
            ["tasks", id] => self.task(id).await,
            ["applications", name] => self.object("app", name).await,
            ["keys", id] => self.object("key", id).await,
            ["fleet", resource] if is_fleet(resource) => self.fleet(resource).await,
            ["fleet", resource, id] if is_fleet(resource) => self.target(resource, id).await,
            ["doctor"] => {
                self.examine("doctor", &["doctor"], "It reads all data, which takes a while with millions of tasks.")
                    .await
            }
            ["verify"] => {
                self.examine("verify", &["audit", "verify"], "It reads the whole audit trail, and checks its seals.")
                    .await
            }
            ["act", group, name] => self.act_page(group, name, None).await,
            [path] => match LISTS.iter().find(|list| list.path == *path) {
                Some(list) => self.list(list, Markup::default(), None).await,
                None => Rendered::missing(),
            },
            _ => Rendered::missing(),
        }
    }
}
