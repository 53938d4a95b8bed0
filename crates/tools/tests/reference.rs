//! `docs/tools.md` is generated from the tools by `cargo xtask docs`.
#![expect(clippy::disallowed_methods, reason = "compares a page of the repository")]

use std::path::Path;

use quipu_tools::reference;

#[test]
fn the_page_of_tools_is_up_to_date() {
    let page = reference();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tools.md");
    if std::env::var_os("QUIPU_WRITE_DOCS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == page, "docs/tools.md is out of date; run `cargo xtask docs`");
}
