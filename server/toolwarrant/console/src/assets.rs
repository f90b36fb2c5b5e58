//! The stylesheet, the script and the icon, each at a path with its hash.

use sha2::{Digest, Sha256};
use std::sync::LazyLock;
use toolwarrant_base::hex;
use toolwarrant_http::people::SiteAnswer;

const FILES: [(&str, &str, &str); 3] = [
    ("css", "text/css; charset=utf-8", include_str!("../assets/console.css")),
    ("js", "text/javascript; charset=utf-8", include_str!("../assets/console.js")),
    ("svg", "image/svg+xml", include_str!("../assets/icon.svg")),
];

static PATHS: LazyLock<[String; 3]> = LazyLock::new(|| {
    FILES.map(|(kind, _, text)| format!("/console-{}.{kind}", hex::encode(&Sha256::digest(text)[..8])))
});

/// Returns the paths of the stylesheet, the script and the icon.
pub(crate) fn paths() -> &'static [String; 3] {
    &PATHS
}

pub(crate) fn find(path: &str) -> Option<SiteAnswer> {
    let place = PATHS.iter().position(|known| known == path)?;
    let (_, content_type, text) = FILES[place];
    Some(SiteAnswer::File { content_type, text })
}
