//! The shared sentences of a contract, the lengths of texts that clients take, and retired names.

/// In characters.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct ReadersSpec {
    pub description: u32,
    pub argument: u32,
    pub list: u32,
    pub list_with_outputs: u32,
    pub instructions: u32,
    pub lead: u32,
    pub brief: u32,
}

/// Phrases of descriptions still have placeholders for a tool's own words.
#[derive(Debug, Default, serde::Serialize)]
pub struct Phrases {
    pub needs: String,
    pub needs_capability: String,
    pub read: String,
    pub act: String,
    pub act_once: String,
    pub task: String,
    pub failures: String,
    pub capability: String,
    pub writes: String,
    pub refused: String,
    pub forbidden: String,
    pub busy: String,
    pub untrusted: String,
    pub secret: String,
    pub followed: String,
    pub under_way: String,
    pub same_write: String,
    pub other_write: String,
    pub lost_task: String,
    pub curable: String,
}

#[derive(Debug, Default)]
pub struct ReservedSpec {
    pub tools: Vec<String>,
    pub errors: Vec<String>,
    pub values: Vec<String>,
}
