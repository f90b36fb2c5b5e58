//! Texts that depend on their reader: a caller gets a sentence that names tools only if it may call
//! all of them. The instructions of `initialize`, remedies, next steps and the answers of handlers
//! are such texts.

use crate::model::{Contract, EffectSpec, Field, Kind, NamedType, ToolSpec, Type};

/// Permissions are sets: bit `n` is the n-th permission of the contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentenceSpec {
    pub text: String,
    /// Bits of which a reader must have all.
    pub needs: u64,
    /// Bits of which a reader must have one; 0: none is needed.
    pub any: u64,
}

/// Returns parts that are the text again if concatenated.
#[must_use]
pub(crate) fn split(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut begin = 0;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let abbreviated = ["e.g.", "i.e."].iter().any(|short| text[..at].ends_with(short));
        if c == '\n' || (c == ' ' && matches!(before, '.' | '?' | '!') && !abbreviated) {
            sentences.push(&text[begin..=at]);
            begin = at + 1;
        }
        before = c;
    }
    sentences.push(&text[begin..]);
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

/// Merges consecutive sentences with the same permissions.
#[must_use]
pub fn sentences(contract: &Contract, text: &str) -> Vec<SentenceSpec> {
    let needs = |sentence: &str| tools_in(contract, sentence).fold(0, |set, tool| set | bit(tool));
    let told = split(text).into_iter().map(|text| (needs(text), text.trim_end()));
    let mut sentences: Vec<SentenceSpec> = Vec::new();
    for (needs, text) in told {
        match sentences.last_mut() {
            Some(last) if last.needs == needs => last.text.extend([" ", text]),
            _ => sentences.push(SentenceSpec { text: text.to_owned(), needs, any: 0 }),
        }
    }
    sentences
}

/// Counts a name without `_` only in backticks, because it may be an ordinary word.
pub(crate) fn tools_in<'a>(contract: &'a Contract, text: &str) -> impl Iterator<Item = &'a ToolSpec> {
    could_name_tools(text).filter_map(|name| contract.tools().find(|tool| tool.name == name))
}

pub(crate) fn names_tool(text: &str, name: &str) -> bool {
    could_name_tools(text).any(|word| word == name)
}

fn could_name_tools(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split('`').skip(1).step_by(2).filter(|quoted| !quoted.contains('_'));
    words(text).filter(|word| word.contains('_')).chain(quoted)
}

pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// Gives a sentence about a kind of tools to readers who may call one of them.
#[must_use]
pub fn instructions(contract: &Contract) -> Vec<Vec<SentenceSpec>> {
    let any = |such: &dyn Fn(&ToolSpec) -> bool| {
        contract.tools().filter(|tool| such(tool)).fold(0, |set, tool| set | bit(tool))
    };
    let requires = any(&|tool| tool.target.as_ref().is_some_and(|target| target.requires.is_some()));
    // A caller that cannot read flags cannot act on them.
    let flags = any(&|tool| shows(&tool.result, &|field| field.name == "capabilities"));
    let writes = any(&|tool| tool.task().is_some());
    let reads_tasks = any(&|tool| matches!(tool.effect, EffectSpec::ReadTask));
    let untrusted = any(&|tool| shows(&tool.result, &|field| field.untrusted));
    let secret = any(&|tool| tool.args.iter().any(|arg| arg.secret) || shows(&tool.result, &|field| field.secret));
    let phrases = &contract.phrases;
    let of = |text: &str, any: u64, concerns_some: bool| -> Vec<SentenceSpec> {
        // Without such tools in the contract, the phrase has no subject.
        let sentences = if concerns_some && any == 0 { Vec::new() } else { sentences(contract, text) };
        sentences.into_iter().map(|sentence| SentenceSpec { any, ..sentence }).collect()
    };
    let states = contract.states.iter().map(|state| format!("{}: {}", state.name, state.meaning));
    let states = format!("States of a task: {}", states.collect::<Vec<_>>().join(" "));
    let paragraphs = [
        [
            of(&contract.service.doc, 0, false),
            of(&phrases.capability, flags, true),
            of(&phrases.writes, writes, true),
            of(&phrases.refused, 0, false),
        ],
        [of(&states, reads_tasks, true), Vec::new(), Vec::new(), Vec::new()],
        [
            of(&phrases.forbidden, requires, true),
            of(&phrases.busy, writes, true),
            of(&phrases.untrusted, untrusted, true),
            of(&phrases.secret, secret, true),
        ],
    ];
    paragraphs.into_iter().map(|parts| parts.concat()).filter(|paragraph| !paragraph.is_empty()).collect()
}

#[must_use]
pub fn instructions_text(contract: &Contract) -> String {
    instructions(contract).iter().map(|paragraph| join(paragraph)).collect::<Vec<_>>().join("\n")
}

pub(crate) fn join(sentences: &[SentenceSpec]) -> String {
    sentences.iter().map(|sentence| sentence.text.as_str()).collect::<Vec<_>>().join(" ")
}

pub(crate) fn shows(result: &NamedType, such: &dyn Fn(&Field) -> bool) -> bool {
    let within = |ty: &Type| ty.element().as_named().is_some_and(|inner| shows(inner, such));
    match &result.kind {
        Kind::Object(fields) => fields.iter().any(|field| such(field) || within(&field.ty)),
        Kind::Map { values, .. } => within(values),
        _ => false,
    }
}

fn bit(tool: &ToolSpec) -> u64 {
    1 << tool.right
}
