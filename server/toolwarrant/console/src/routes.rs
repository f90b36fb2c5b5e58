//! The path of a request becomes a page. Nothing but the door, the stylesheet, the script and the
//! icon is answered without a session.

use crate::assets;
use crate::door::Visitor;
use crate::lists::LISTS;
use crate::markup::Markup;
use crate::pages::{Shell, SignIn, is_fleet, tag};
use crate::rendered::Rendered;
use crate::state::ConsoleState;
use crate::visit::ConsoleVisit;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use toolwarrant_base::BoxFuture;
use toolwarrant_http::people::{PeopleSite, SiteAnswer, SiteRequest};
use toolwarrant_operator::socket::CommandReceiver;

pub(crate) struct ConsoleSite {
    pub(crate) console: Arc<ConsoleState>,
    pub(crate) receiver: Arc<dyn CommandReceiver>,
}

/// A page that waits for a change is answered after this time.
const HOLD: Duration = Duration::from_secs(25);

/// A page that takes long to make is made more seldom: a window has at most this part of a core.
const SHARE: u32 = 20;

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
            (_, Some(_)) => self.shell(&visit(&[]), path, &Rendered::missing()),
            (["find"], None) => {
                let visit = visit(&query);
                match visit.find(visit.query_value("id").unwrap_or_default().trim()).await {
                    Ok(path) => see(&path, None),
                    Err(rendered) => self.shell(&visit, path, &rendered),
                }
            }
            (_, None) => match shown {
                None => {
                    let visit = visit(&query);
                    self.shell(&visit, path, &visit.page(&parts).await)
                }
                Some(shown) => self.hold(&visit(&query), &parts, shown, cookie.unwrap_or_default()).await,
            },
        }
    }

    fn shell(&self, visit: &ConsoleVisit<'_>, path: &str, rendered: &Rendered) -> SiteAnswer {
        let tag = tag(rendered);
        page(rendered.status, &Markup::of(&Shell::of(visit, path, rendered, &tag)))
    }

    /// Answers with the main part of a page once it is another than the shown one, and with nothing
    /// after a while. The session may end meanwhile.
    async fn hold(&self, visit: &ConsoleVisit<'_>, parts: &[&str], shown: &str, cookie: &str) -> SiteAnswer {
        let end = Instant::now() + HOLD;
        loop {
            let begun = Instant::now();
            let mut closing = pin!(self.console.closing.notified());
            closing.as_mut().enable();
            let rendered = visit.page(parts).await;
            let tag = tag(&rendered);
            if tag != shown {
                let html = format!("<main id=\"main\" data-tag=\"{tag}\">{}</main>", rendered.main);
                return SiteAnswer::Page { status: 200, html };
            }
            tokio::select! {
                () = sleep(rendered.live.unwrap_or(HOLD).max(begun.elapsed() * SHARE)) => {}
                () = closing => {}
            }
            let visitor: Option<Visitor> = self.console.door.admit(cookie, false);
            if visitor.is_none() {
                return self.door(401, ENDED);
            }
            if Instant::now() > end {
                return SiteAnswer::Nothing;
            }
        }
    }
}

impl ConsoleVisit<'_> {
    /// Returns the page at a path.
    async fn page(&self, parts: &[&str]) -> Rendered {
        match parts {
            [""] => self.overview().await,
            ["tasks", id] => self.task(id).await,
            ["applications", name] => self.application(name).await,
            ["keys", id] => self.key(id).await,
            ["fleet", resource] if is_fleet(self.console.catalogue, resource) => self.fleet(resource).await,
            ["fleet", resource, id] if is_fleet(self.console.catalogue, resource) => self.target(resource, id).await,
            ["doctor"] => {
                self.examine("doctor", &["doctor"], "Reads all data, which takes a while with millions of tasks.").await
            }
            ["verify"] => {
                self.examine("verify", &["audit", "verify"], "Reads the whole audit trail, and checks its seals.").await
            }
            ["act", group, name] => self.act_page(group, name, None).await,
            [path] => match LISTS.iter().find(|list| list.path == *path) {
                Some(list) => self.list(list).await,
                None => Rendered::missing(),
            },
            _ => Rendered::missing(),
        }
    }
}
