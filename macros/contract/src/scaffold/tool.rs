//! The description of a new tool, and the questions for what it leaves out.

use toolwarrant_reader::model::Contract;

/// The description of a tool that does not exist yet. A key that is `None` has a default, or
/// [`NewTool::missing`] asks for it.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct NewTool {
    /// Its name on the wire
    pub name: String,
    /// The file of `tools/`, without ending. A name that is not there yet makes a new file
    #[arg(long, value_name = "FILE")]
    pub file: Option<String>,
    /// Its name for people. Default: the name in words
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// The permission that it needs
    #[arg(long, value_name = "PERMISSION")]
    pub permission: Option<String>,
    /// `read`, `act`, `issue` or `task`
    #[arg(long, value_name = "EFFECT")]
    pub effect: Option<String>,
    /// The resource that it acts on
    #[arg(long, value_name = "RESOURCE")]
    pub resource: Option<String>,
    /// The capability that its target must offer
    #[arg(long, value_name = "CAPABILITY")]
    pub capability: Option<String>,
    /// Its HTTP twin: `METHOD /v1/path`
    #[arg(long, value_name = "TWIN")]
    pub http: Option<String>,
    /// The type of its result. Default: a new type with the name of the tool
    #[arg(long, value_name = "TYPE")]
    pub result: Option<String>,
    /// Tasks: the probe that verifies it
    #[arg(long, value_name = "PROBE")]
    pub probe: Option<String>,
    /// Acts and tasks: true if it may be sent again
    #[arg(long)]
    pub idempotent: bool,
    /// Its purpose
    #[arg(long, value_name = "SENTENCE")]
    pub summary: Option<String>,
    /// When to use it, as the continuation of "Use it"
    #[arg(long, value_name = "TEXT")]
    pub use_when: Option<String>,
    /// The alternative: a sentence that names another tool
    #[arg(long, value_name = "SENTENCE")]
    pub not_when: Option<String>,
}

#[derive(Debug)]
pub struct Question {
    pub key: &'static str,
    pub text: &'static str,
    /// Empty if any text is an answer.
    pub known: Vec<String>,
    pub optional: bool,
}

pub(super) const EFFECTS: [&str; 4] = ["read", "act", "issue", "task"];

impl NewTool {
    pub fn missing(&mut self, contract: &Contract) -> Vec<(Question, &mut Option<String>)> {
        let question = |key, text, known: Vec<&str>| Question {
            key,
            text,
            known: known.into_iter().map(str::to_owned).collect(),
            optional: key == "resource",
        };
        let files = contract.domains.iter().map(|domain| domain.name.as_str()).collect();
        let permissions = contract.permissions.iter().map(|permission| permission.name.as_str()).collect();
        let resources = contract.resources.iter().map(|resource| resource.name.as_str()).collect();
        let questions = [
            (question("file", "Which file of `tools/` gets it? Another name makes a new file.", files), &mut self.file),
            (question("effect", "What does a call do?", EFFECTS.into()), &mut self.effect),
            (question("permission", "Which permission does a caller need?", permissions), &mut self.permission),
            (question("resource", "Which resource does it act on, if any?", resources), &mut self.resource),
            (question("summary", "What does it do? Answer with a sentence.", Vec::new()), &mut self.summary),
            (question("use_when", "When does an agent use it? Continue \"Use it\".", Vec::new()), &mut self.use_when),
        ];
        questions.into_iter().filter(|(_, answer)| answer.is_none()).collect()
    }
}
