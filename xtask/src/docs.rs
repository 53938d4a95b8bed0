//! `cargo xtask docs`: writes the generated pages anew. The tests that compare them do the writing when told to.

use crate::shell::{self, cargo};

pub(crate) fn run() -> anyhow::Result<()> {
    let mut test = cargo(&["test", "--quiet", "--package", "quipu-tools", "--test", "reference"]);
    shell::run(test.env("QUIPU_WRITE_DOCS", "1"))
}
