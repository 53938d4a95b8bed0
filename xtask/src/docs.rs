//! `cargo xtask docs`: writes the generated pages again. The tests that compare them write them if an environment variable is set.

use crate::shell::{self, cargo};

pub(crate) fn run() -> anyhow::Result<()> {
    for (package, test, name) in [("quipu-tools", "reference", "the_page_of_tools"), ("quipu", "e2e", "agent_tasks")] {
        let mut test = cargo(&["test", "--quiet", "--package", package, "--test", test, name]);
        shell::run(test.env("QUIPU_WRITE_DOCS", "1"))?;
    }
    Ok(())
}
