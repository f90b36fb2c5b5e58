//! Reads the terms of grants.

use super::answer::refusal;
use crate::context::OperatorContext;
use crate::error::OperatorError;
use std::collections::BTreeMap;
use toolwarrant_core::access::{Granted, Grants};
use toolwarrant_core::catalogue::ResourceDef;

/// Reads what a new application sees. Without a term, it sees nothing.
pub(super) async fn read_grants(context: &OperatorContext, assigned: &[String]) -> Result<Grants, OperatorError> {
    let mut terms: BTreeMap<&'static str, (&'static ResourceDef, Vec<String>)> = BTreeMap::new();
    for assigned in assigned {
        let named =
            assigned.split_once(':').and_then(|(name, term)| Some((context.program.catalogue.resource(name)?, term)));
        let found = match (named, context.program.catalogue.resources) {
            (None, [only]) => Some((only, assigned.as_str())),
            (named, _) => named,
        };
        let names = || context.program.catalogue.resource_names().join(", ");
        let unnamed =
            || refusal(format!("`{assigned}` must begin with a resource and a colon; there are: {}", names()));
        let (def, term) = found.ok_or_else(unnamed).map_err(|error| error.at("assign"))?;
        terms.entry(def.name).or_insert((def, Vec::new())).1.push(term.to_owned());
    }
    let mut grants = BTreeMap::new();
    for (def, terms) in terms.into_values() {
        let granted = read_terms(def, &terms).map_err(|why| refusal(why).at("assign"))?;
        let ids: Vec<_> = granted.ids().iter().map(ToString::to_string).collect();
        must_exist(context, def, &ids).await.map_err(|error| error.at("assign"))?;
        grants.insert(def.name.into(), granted);
    }
    Ok(Grants::only(grants))
}

pub(super) fn read_terms(resource: &ResourceDef, terms: &[String]) -> Result<Granted, String> {
    let mut granted = Granted::default();
    // Exceptions come last, because they are of prefixes.
    for excepts in [false, true] {
        for term in terms.iter().filter(|term| term.starts_with('!') == excepts) {
            let id = term.strip_prefix('!').unwrap_or(term);
            match id.strip_suffix('*') {
                Some(prefix) if !excepts && resource.ids.can_begin(prefix) => {
                    granted.add_prefix(prefix);
                }
                None if !resource.ids.admits(id) => return Err(format!("{term:?} is no {} id", resource.name)),
                None if !excepts => granted.add(id),
                None if granted.covers(id) && !granted.ids().contains(id) => granted.remove(id),
                None => return Err(format!("`{term}` is no exception: no prefix grants this {}", resource.name)),
                Some(_) if excepts => return Err(format!("`{term}` is no exception: it must be `!` and one id")),
                Some(_) => {
                    return Err(format!("no {} id can begin with {:?}", resource.name, id.trim_end_matches('*')));
                }
            }
        }
    }
    Ok(granted)
}

pub(super) async fn must_exist(
    context: &OperatorContext,
    def: &ResourceDef,
    ids: &[String],
) -> Result<(), OperatorError> {
    let resource = def.name;
    if let Some(id) = ids.iter().find(|id| !def.ids.admits(id)) {
        return Err(refusal(format!("{id:?} is not a valid {resource} id")));
    }
    let Some(inventory) = &context.inventory else { return Ok(()) };
    match inventory.missing(resource, ids).await.map_err(refusal)? {
        Some(absent) => {
            let program = context.program.names.program;
            Err(OperatorError::not_found(format!(
                "there is no {resource} `{absent}`; `{program} {resource} list` shows the existing ones"
            )))
        }
        None => Ok(()),
    }
}
