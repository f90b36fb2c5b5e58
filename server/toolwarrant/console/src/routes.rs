//! The path of a request becomes a page. Nothing but the door, the stylesheet, the script and the
//! icon is answered without a session.

use crate::assets;
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

const ENDED: &str = "There is no session, or it has ended. The command `console` makes a link.";

impl PeopleSite for ConsoleSite {
    fn is_at(&self, host: &str) -> bool {
        self.console.is_at(host)
    }

    fn cookie(&self) -> &'static str {
        "console"
    }

    fn answer<'a>(&'a self, request: SiteRequest<'a>) -> BoxFuture<'a, SiteAnswer> {
        Box::pin(self.route(request))
    }
}

fn see(path: &str, cookie: Option<String>) -> SiteAnswer {
    SiteAnswer::See { path: path.to_owned(), cookie }
}

fn page(status: u16, html: &Markup) -> SiteAnswer {
    SiteAnswer::Page { status, html: html.as_str().to_owned() }
}

impl ConsoleSite {
    fn door(&self, status: u16, message: &str) -> SiteAnswer {
        let service = self.console.catalogue.service.title;
        page(status, &Markup::of(&SignIn { service, message, asset: assets::paths() }))
    }

    async fn route(&self, request: SiteRequest<'_>) -> SiteAnswer {
        let SiteRequest { path, parts, query, form, cookie, shown } = request;
        let door = &self.console.door;
        match (path, &form) {
            ("/in", None) => return self.door(200, ""),
            ("/in", Some(fields)) => {
                let code = fields.iter().find(|(name, _)| name == "code").map(|(_, value)| value.trim());
                return match code.and_then(|code| door.enter(code)) {
                    Some(secret) => see("/", Some(secret)),
                    None => self.door(403, "This code does not work: it works once, for a minute."),
                };
            }
            _ => {}
        }
        if let Some(file) = assets::find(path).filter(|_| form.is_none()) {
            return file;
        }
        let Some(visitor) = cookie.and_then(|cookie| door.admit(cookie, shown.is_none())) else {
            return self.door(401, ENDED);
        };
        let parts: Vec<_> = parts.iter().map(String::as_str).collect();
        let visit =
            |query| ConsoleVisit { console: &self.console, receiver: &*self.receiver, visitor: &visitor, query };
        match (&parts[..], &form) {
            (["out"], Some(_)) => {
                door.end(Some(&visitor.session));
                see("/in", Some(String::new()))
            }
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
                self.examine("doctor", &["doctor"], "Reads all data, which takes a while with millions of tasks.").await
            }
            ["verify"] => {
                self.examine("verify", &["audit", "verify"], "Reads the whole audit trail, and checks its seals.").await
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
