//! Acts as forms. A form has the inputs of its command. The command line's parser and `execute`
//! judge what was filled in. The page of a form says what the act does, so it also is the
//! confirmation of an act that cannot be undone.

use crate::answer::{encode, sentence, show, words};
use crate::lists::FormInput;
use crate::markup::Markup;
use crate::rendered::{Heading, Rendered};
use crate::visit::ConsoleVisit;
use askama::Template;
use serde_json::json;
use toolwarrant_operator::answers::{CalledTool, NewApplicationAnswer, NewKeyAnswer, OperatorAnswer};
use toolwarrant_operator::cli::{CommandForm, describe_form};
use toolwarrant_operator::view::{AnswerView, Show};
use toolwarrant_operator::{FailureCode, OperatorError};

/// The acts on applications and keys.
const ACTS: [(&str, &str); 2] = [
    ("app", "create grant revoke suspend resume rename rate label call delete"),
    ("key", "create rotate end-old expire suspend resume label revoke"),
];

/// The acts that cannot be undone.
const FINAL: [(&str, &str); 4] = [("app", "delete"), ("key", "rotate"), ("key", "end-old"), ("key", "revoke")];

/// The acts on the targets of each resource.
const OF_TARGETS: [&str; 3] = ["assign", "unassign", "set"];

pub(crate) fn is_final(group: &str, name: &str) -> bool {
    FINAL.contains(&(group, name))
}

fn name_act(group: &str, name: &str) -> String {
    format!("{} {}", name.replace('-', " "), if group == "app" { "application" } else { group })
}

/// Returns the acts on applications, or on keys.
pub(crate) fn list_acts(group: &str) -> impl Iterator<Item = &'static str> {
    let acts = ACTS.iter().find(|(known, _)| *known == group).map_or("", |(_, acts)| acts);
    acts.split(' ')
}

/// The field with the id of a form, which no input has.
const FORM_ID: &str = "form-id";

/// The field with the reason that is recorded.
const REASON: &str = "reason";

#[derive(Template)]
#[template(path = "pages/act.html")]
struct ActPage<'a> {
    heading: Heading,
    path: String,
    about: Vec<&'a str>,
    cannot_be_undone: bool,
    inputs: Vec<FormInput>,
    form_id: String,
    reason: &'a str,
    button: String,
    /// The object as it is now.
    object: Markup,
}

#[derive(Template)]
#[template(path = "pages/done.html")]
struct DonePage {
    heading: Heading,
    back: (String, String),
    /// The page that a tool has issued.
    url: Option<String>,
    body: Markup,
    /// A new key in the forms in which it is used, with a name for each.
    secret: Vec<(&'static str, String)>,
}

impl ConsoleVisit<'_> {
    /// Returns the form of an act, and true if the act cannot be undone.
    fn act_of(&self, group: &str, name: &str) -> Option<(CommandForm, bool)> {
        let catalogue = self.console.catalogue;
        let is_of_target = catalogue.resource(group).is_some() && OF_TARGETS.contains(&name);
        let is_act = is_of_target || list_acts(group).any(|act| act == name);
        let form = describe_form(catalogue, &[group, name]).filter(|_| is_act)?;
        Some((form, is_final(group, name)))
    }

    pub(crate) async fn act_page(&self, group: &str, name: &str, error: Option<OperatorError>) -> Rendered {
        let Some((form, cannot_be_undone)) = self.act_of(group, name) else { return Rendered::missing() };
        if !self.may_act() {
            let why = "this session may only look; `console --operate` makes a link that may change";
            return Rendered::failure(&error.unwrap_or_else(|| OperatorError::new(FailureCode::NotAllowed, why)));
        }
        // The object that the form acts on, and no other that the query may name.
        let of = ["key", "app"].into_iter().find(|of| form.inputs.iter().any(|input| input.name == *of));
        let object = match of.and_then(|of| Some((of, self.query_value(of)?))) {
            Some((of, id)) => self.ask_any(&[of, "show", "--", id]).await.ok(),
            None => None,
        };
        let (object, catalogue) = (object.map(|object| show(&object)), self.console.catalogue);
        let about = form.about.clone();
        let tool = self.query_value("tool").filter(|_| name == "call").and_then(|tool| catalogue.tool(tool));
        let title = tool.map_or_else(|| words(&name_act(group, name)), |tool| tool.title.to_owned());
        let mut inputs = self.inputs(form, Some(group)).await;
        inputs.retain(|input| input.input.name != "yes");
        let mut unplaced = error.as_ref();
        for input in &mut inputs {
            // The page shows this object.
            let is_given = ["app", "key", "tool", "arguments"].contains(&&*input.input.name);
            input.is_fixed = error.is_none() && is_given && !input.value.is_empty();
            if let Some(error) = unplaced.filter(|error| error.field.as_deref() == Some(&input.input.name)) {
                input.refused = Some(sentence(&error.message));
                unplaced = None;
            }
        }
        let heading = Heading { error: unplaced.map(|error| sentence(&error.message)), ..Heading::of(&title) };
        let page = ActPage {
            heading,
            path: format!("/act/{}/{}", encode(group), encode(name)),
            about: about.split("\n\n").collect(),
            cannot_be_undone,
            inputs,
            form_id: self.console.door.make_form(self.visitor),
            reason: self.query_value(REASON).unwrap_or_default(),
            button: title.clone(),
            object: object.unwrap_or_default(),
        };
        let status = error.map_or(200, |error| Rendered::failure(&error).status);
        Rendered { status, ..Rendered::of(&title, &page) }
    }

    /// Carries out the act with the fields of a form.
    pub(crate) async fn act(&self, group: &str, name: &str) -> Rendered {
        let Some((form, _)) = self.act_of(group, name) else { return Rendered::missing() };
        let id = self.query_value(FORM_ID).unwrap_or_default();
        // The command refuses and records what a session that may only look sends.
        if self.may_act() && !self.console.door.take_form(self.visitor, id) {
            let why = "this form was sent before, or is too old; nothing was done now. Look at the page, and fill it in again if needed";
            return Rendered { status: 409, ..Rendered::failure(&OperatorError::refusal(why)) };
        }
        let mut fields = self.query.to_vec();
        // The page of the form has asked.
        fields.push(("yes".to_owned(), "on".to_owned()));
        let mut visitor = self.visitor.clone();
        if let Some(reason) = self.query_value(REASON) {
            visitor.operator.claims.reason = Some(reason.to_owned());
            visitor.operator.claims = visitor.operator.claims.limit();
        }
        let visit = ConsoleVisit { visitor: &visitor, ..*self };
        match visit.ask_words(&form.fill(&[group, name], &fields)).await {
            Ok(answer) => self.show_done(group, name, &answer),
            Err(error) => self.act_page(group, name, Some(error)).await,
        }
    }

    fn show_done(&self, group: &str, name: &str, answer: &OperatorAnswer) -> Rendered {
        let app = self.query_value("app").unwrap_or_default();
        let to_key = |id: &str| (format!("/keys/{}", encode(id)), format!("To the key {id}"));
        let back = match answer {
            OperatorAnswer::NewKey(key) => to_key(&key.key_id),
            OperatorAnswer::NewApplication(answer) => to_key(&answer.key.key_id),
            OperatorAnswer::Key(key) => to_key(&key.key_id),
            OperatorAnswer::RevokedKey(key) => to_key(&key.key_id),
            OperatorAnswer::Application(answer) if name != "delete" => {
                let facts = &answer.application;
                (format!("/applications/{}", encode(&facts.id)), format!("To the application {}", facts.name))
            }
            OperatorAnswer::Called(_) => (format!("/audit?app={}", encode(app)), format!("To the calls of {app}")),
            _ => ("/applications".to_owned(), "To the applications".to_owned()),
        };
        let url = match answer {
            OperatorAnswer::Called(CalledTool { result, .. }) => result["url"].as_str().map(str::to_owned),
            _ => None,
        };
        // Another scheme could run a script.
        let url = url.filter(|url| ["https://", "http://"].iter().any(|scheme| url.starts_with(scheme)));
        let heading = Heading::of(&format!("Done: {}", name_act(group, name)));
        let (body, secret) = match answer {
            OperatorAnswer::NewKey(key) => (show(&key.made), self.describe_secret(key)),
            OperatorAnswer::NewApplication(answer) => {
                let NewApplicationAnswer { application, key } = &**answer;
                let facts = [application.facts(), key.made.facts()].concat();
                (show(&AnswerView::Facts(facts)), self.describe_secret(key))
            }
            answer => (show(answer), Vec::new()),
        };
        Rendered::of("Done", &DonePage { heading, back, url, body, secret })
    }

    /// Returns a key as a client takes it, as JSON, and as the configuration of a host.
    fn describe_secret(&self, key: &NewKeyAnswer) -> Vec<(&'static str, String)> {
        let NewKeyAnswer { key_id, secret, made: _ } = key;
        let (program, url) = (self.receiver.program(), &self.console.url);
        let headers = json!({"Authorization": format!("Bearer {key_id}:{secret}")});
        let host = json!({"mcpServers": {program: {"type": "http", "url": format!("{url}/mcp"), "headers": headers}}});
        let json = json!({"key_id": key_id, "secret": secret});
        vec![
            ("Key and secret", format!("{key_id}:{secret}")),
            ("JSON", json.to_string()),
            ("Configuration of a host", format!("{host:#}")),
        ]
    }
}
