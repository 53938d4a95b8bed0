//! `cargo xtask <command>`: what this repository does to itself. One file per command, named as the command.
//!
//! It has few dependencies on purpose: it must build before anything else is known to.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a development tool: it prints, and opens files of its own making"
)]

mod bench;
mod cargo_test;
mod crash;
mod deny;
mod docs;
mod eval;
mod explorer;
mod fuzz;
mod instructions;
mod latency;
mod load;
mod memory;
mod share;
mod team;
mod test;

mod committed;
mod data;
mod peers;
mod postgres;
mod shell;
mod steps;

#[cfg(test)]
mod tidy;

use std::process::ExitCode;

use anyhow::{Context, bail};

const HELP: &str = "\
cargo xtask test [--quick]                 runs every check; --quick skips instruction counts, crash rounds and
                                           other MCP clients
cargo xtask peers                          runs only the checks with other MCP clients
cargo xtask crash [--rounds N] [--seed N]  kills the server during writes and checks what is on disk
cargo xtask share [--kills N] [--seed N] [--release]
                                           kills the owner of a vault under eight clients and checks their writes
cargo xtask team [--rounds N] [--seed N] [--answers N]
                 [--scale [--sizes 1k,10k,100k] [--only servers,notes,entities,graphs,vectors] [--release] [--write]]
                                           four servers on PostgreSQL, sixteen clients: kills and stops servers, cuts
                                           connections, fails over, fills the disk; checks every acknowledged write.
                                           --answers compares N random calls for each real vault with a folder instead;
                                           --scale measures instead, beside the embedded store, all sections or those of
                                           --only; --write updates these in docs/
cargo xtask fuzz files|renames [--rounds N] [--seed N]
                                           files: changes files, links and folders under a server and compares its index
                                           with a fresh one; renames: renames and moves notes and compares the target of every link
cargo xtask load [--clients N] [--seconds N] [--release]
                                           reads and writes with many HTTP clients at once; fails on a lost write
cargo xtask instructions [--write]         counts the instructions of the hot paths; fails where one takes 10 % more than it did;
                                           --write accepts the counts
cargo xtask latency [--write]              measures a call to the owner, through the socket and over HTTP
cargo xtask bench [--sizes 1k,10k,100k] [--before FILE] [--write]
                                           measures the release build against the budgets, beside the earlier figures in
                                           docs/benchmarks.md or another FILE; --write updates docs/
cargo xtask bench --meaning [--sizes 1,10,50] [--write]
                                           measures how soon a fresh vault of so many MB can be searched by meaning;
                                           --write updates the rows of these sizes in docs/
cargo xtask memory duplicates|recall|speed|vectors|wire [SIZES]
                                           measures memory: duplicates and recall on real data, speed of the library
                                           without and with vectors, and speed over stdio beside the reference server
cargo xtask eval [--set NAME] [--write]    measures ranking on judged sets, by words, by meaning and by both
cargo xtask eval --words [--set NAME]      the same by words alone, beside plain BM25: no vectors, so seconds
cargo xtask eval --weights [--set NAME]    ranking by the weight of meaning, and the weight that each set's others would choose
cargo xtask explorer [--build] [--measure [--release] [--write]] [--screenshots]
                                           tests the explorer in headless Chromium; --build writes web/dist from the sources,
                                           --measure times the picture at 1k, 10k and 50k notes (--write updates docs/),
                                           --screenshots writes docs/images
cargo xtask deny                           checks licences, bans and sources of dependencies (deny.toml)
cargo xtask docs                           writes the generated pages of docs/";

fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, options) = match arguments.split_first() {
        Some((command, options)) => (command.as_str(), Options(options)),
        None => bail!("which command?\n{HELP}"),
    };
    if options.has("--help") {
        println!("{}", help_of(command).as_deref().unwrap_or(HELP));
        return Ok(ExitCode::SUCCESS);
    }
    options.must_be_known_to(command)?;
    match command {
        "test" => return Ok(test::run(options.has("--quick"))),
        "peers" => return test::run_peers(),
        "crash" => {
            let rounds = options.number("--rounds")?.unwrap_or(crash::ROUNDS);
            let seed = options.number("--seed")?.unwrap_or(crash::SEED);
            let binary = shell::build_binary(shell::Profile::Dev)?;
            crash::run(&binary, rounds, seed)?;
            crash::run_memory(&binary, seed)
        }
        "share" => {
            let kills = options.number("--kills")?.unwrap_or(share::KILLS);
            let seed = options.number("--seed")?.unwrap_or(crash::SEED);
            share::run(&shell::build_binary(options.profile())?, kills, seed)
        }
        "team" if options.has("--scale") => {
            let sizes = options.sizes("1k,10k,100k")?;
            let only = options.value("--only");
            team::scale::run(&shell::build_binary(options.profile())?, &sizes, only, options.has("--write"))
        }
        "team" if options.has("--answers") => team::answers(options.number("--answers")?.context("--answers N")?),
        "team" => {
            let rounds = options.number("--rounds")?.unwrap_or(team::ROUNDS);
            let seed = options.number("--seed")?.unwrap_or(team::SEED);
            team::run(&shell::build_binary(shell::Profile::Dev)?, rounds, seed)
        }
        "fuzz" => {
            let seed = options.number("--seed")?.unwrap_or(fuzz::SEED);
            fuzz::run(options.0.first().map(String::as_str), options.number("--rounds")?, seed)
        }
        "load" => {
            let clients = options.number("--clients")?.unwrap_or(load::CLIENTS);
            let seconds = options.number("--seconds")?.unwrap_or(load::SECONDS);
            load::run(&shell::build_binary(options.profile())?, clients, seconds)
        }
        "instructions" => instructions::run(options.has("--write"), &mut steps::Tally::default()),
        "latency" => latency::run(options.has("--write")),
        "bench" if options.has("--meaning") => bench::meaning::run(&options.sizes("1,10,50")?, options.has("--write")),
        "bench" => bench::run(&options.sizes("1k,10k")?, options.value("--before"), options.has("--write")),
        "memory" => memory::run(options.0),
        "eval" if options.has("--weights") => eval::choose_weights(options.value("--set")),
        "eval" => eval::run(options.value("--set"), options.has("--words"), options.has("--write")),
        "explorer" if options.has("--build") => explorer::build(),
        "explorer" if options.has("--measure") => explorer::measure(options.profile(), options.has("--write")),
        "explorer" if options.has("--screenshots") => explorer::screenshots(),
        "explorer" => return explorer::run(),
        "deny" => deny::run(),
        "docs" => docs::run(),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(())
        }
        other => bail!("no command `{other}`\n{HELP}"),
    }
    .map(|()| ExitCode::SUCCESS)
}

/// The lines of the help that are about one command.
fn help_of(command: &str) -> Option<String> {
    let commands = HELP.split("cargo xtask ").filter(|help| help.split([' ', '\n']).next() == Some(command));
    let help = commands.map(|help| format!("cargo xtask {}\n", help.trim_end())).collect::<String>();
    (!help.is_empty()).then_some(help)
}

/// The arguments after the command.
struct Options<'a>(&'a [String]);

impl Options<'_> {
    /// The help says what a command knows, so it is asked: a mistyped option must not start an hour of measuring.
    fn must_be_known_to(&self, command: &str) -> anyhow::Result<()> {
        let Some(help) = help_of(command) else { return Ok(()) };
        let known = |option: &&String| help.split(|c: char| " []".contains(c)).any(|word| word == option.as_str());
        match self.0.iter().filter(|option| option.starts_with('-')).find(|option| !known(option)) {
            Some(option) => bail!("no option `{option}`\n{help}"),
            None => Ok(()),
        }
    }

    fn profile(&self) -> shell::Profile {
        if self.has("--release") { shell::Profile::Release } else { shell::Profile::Dev }
    }

    fn has(&self, flag: &str) -> bool {
        self.0.iter().any(|option| option == flag)
    }

    fn value(&self, flag: &str) -> Option<&str> {
        let at = self.0.iter().position(|option| option == flag)?;
        self.0.get(at + 1).map(String::as_str)
    }

    fn sizes(&self, usual: &str) -> anyhow::Result<Vec<usize>> {
        self.value("--sizes").unwrap_or(usual).split(',').map(bench::size).collect()
    }

    fn number(&self, flag: &str) -> anyhow::Result<Option<u64>> {
        self.value(flag).map(|text| text.parse().with_context(|| format!("{flag} {text}"))).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_knows_the_options_of_all_its_lines_of_help_and_no_others() {
        let is_known = |command, option: &str| Options(&[option.to_owned()]).must_be_known_to(command).is_ok();
        for (command, option) in
            [("bench", "--before"), ("bench", "--meaning"), ("eval", "--write"), ("eval", "--weights")]
        {
            assert!(is_known(command, option), "{command} {option}");
        }
        assert!(!is_known("bench", "--weights") && !is_known("eval", "--weight"));
    }
}
