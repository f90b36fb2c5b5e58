//! Links between pages.

use super::plain::pages;
use super::{assert_none, display, read};

#[test]
fn every_link_of_the_pages_leads_to_a_file_and_to_a_heading_in_it() {
    let pages = pages();
    let linked: Vec<_> =
        pages.iter().flat_map(|page| links(&read(page)).into_iter().map(move |link| (page, link))).collect();
    assert!(linked.len() > pages.len(), "few links were found: {linked:?}");
    let broken = linked.into_iter().filter(|(page, link)| {
        let (file, anchor) = link.split_once('#').map_or((&**link, None), |(file, anchor)| (file, Some(anchor)));
        let target = if file.is_empty() { page.to_path_buf() } else { page.with_file_name(file) };
        !target.exists() || anchor.is_some_and(|anchor| !anchors(&read(&target)).any(|known| known == anchor))
    });
    assert_none(broken.map(|(page, link)| (display(page), format!("leads nowhere: {link}"))));
}

/// Finds `[text](target)`, and `[text]: target` at the start of a line.
fn links(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(page) {
        let inline = line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
        let reference = line.strip_prefix('[').and_then(|rest| Some(rest.split_once("]: ")?.1));
        found.extend(inline.chain(reference).filter(|link| !link.contains("://")).map(str::to_owned));
    }
    found
}

/// Returns lower case, without punctuation, with hyphens for spaces.
fn anchors(page: &str) -> impl Iterator<Item = String> {
    let headings = prose(page).filter(|line| line.starts_with('#'));
    headings.map(|line| line.trim_start_matches('#').trim()).map(|heading| {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    })
}

pub(super) fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}
