//! Any text is read without a panic, its sections cover the body, and its links can be rewritten and read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_core::parse::{link_sites, parse, rewrite_targets};

fuzz_target!(|text: &str| {
    let parsed = parse(text);
    let mut at = parsed.body_start;
    for section in &parsed.sections {
        assert_eq!(section.range.start, at);
        assert!(text.get(section.text_start..section.range.end).is_some());
        at = section.range.end;
    }
    assert_eq!(at, text.len());

    let sites = link_sites(text);
    assert_eq!(sites.len(), parsed.links.len());
    assert!(sites.iter().all(|site| text.get(site.target_range.clone()).is_some()));

    let rewritten = rewrite_targets(text, |_| Some("new name.md".to_owned()));
    let after = link_sites(&rewritten.text);
    assert_eq!(after.len(), sites.len());
    if rewritten.refused.is_empty() {
        assert!(after.iter().all(|site| site.link.target == "new name.md"));
    }
});
