//! The first page: how the service does, and what needs a look.

use super::{Heading, Rendered};
use crate::answer::show;
use crate::markup::Markup;
use crate::visit::ConsoleVisit;
use askama::Template;

#[derive(Template)]
#[template(path = "pages/single.html")]
struct OverviewPage {
    heading: Heading,
    body: Markup,
}

impl ConsoleVisit<'_> {
    pub(crate) async fn overview(&self) -> Rendered {
        let asked = ["ready"];
        match self.ask(&asked).await {
            Ok(answer) => {
                let page =
                    OverviewPage { heading: Heading::of("overview"), body: show(self.console.catalogue, &answer) };
                Rendered { is_live: true, ..Rendered::of("overview", &page).with_words(&asked) }
            }
            Err(error) => Rendered::failure(&error),
        }
    }
}
