//! Lowers the body of a tool: the field of its result that leaves as a block of its own.

use super::lowering::Lowering;
use crate::lower::fields::is_text;
use crate::model::{BodySpec, EffectSpec, Field, Kind, NamedType, Type};
use crate::raw;
use crate::rules::Rule;
use crate::sentences::shows;

impl Lowering<'_> {
    pub(super) fn body(
        &mut self,
        tool: &raw::Tool,
        effect: &EffectSpec,
        result: &NamedType,
    ) -> Option<Option<BodySpec>> {
        let Kind::Object(fields) = &result.kind else { return None };
        let is_picture = |field: &Field| matches!(field.ty.element(), Type::Picture);
        let Some(name) = &tool.body else {
            if let (true, Some(result)) = (shows(result, &is_picture), &tool.result) {
                let help = "name that field: `body = \"...\"`, at this tool".to_owned();
                self.add(Rule::Body, result, "a picture leaves only as the body of a tool", Some(help));
            }
            return Some(None);
        };
        if matches!(effect, EffectSpec::Task(_)) {
            self.add(Rule::Body, name, "the result of a task tool is derived, and has no body", None);
            return None;
        }
        let Some(field) = fields.iter().find(|field| field.name == **name) else {
            self.unknown(Rule::Body, "field", name, fields.iter().map(|field| field.name.as_str()));
            return None;
        };
        let others = || fields.iter().filter(|other| other.name != field.name);
        let inner = |other: &Field| other.ty.element().as_named().is_some_and(|inner| shows(inner, &is_picture));
        let what = match &field.ty {
            _ if field.nullable => "may be null, and a body is always there",
            _ if field.secret => "is secret, and hosts show a body to people",
            ty if !is_text(ty) && !matches!(ty, Type::Picture) => "is neither a text nor a picture",
            _ if others().any(|other| is_picture(other) || inner(other)) => "is not the only place of a picture",
            ty => return Some(Some(BodySpec { field: field.name.clone(), is_picture: matches!(ty, Type::Picture) })),
        };
        let help = Some("choose a text or the picture of the result, or leave `body` out".to_owned());
        self.add(Rule::Body, name, format!("`{}` {what}", **name), help);
        None
    }
}
