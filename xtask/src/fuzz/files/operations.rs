//! Random operations on the files of a vault. What the file system refuses, since something else is there or nothing is, has
//! not happened.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;
use std::{fs, io, thread};

use quipu_testkit::generate::Random;

pub(super) const TAGS: [&str; 3] = ["red", "blue/deep", "緑"];

const FOLDERS: [&str; 9] = ["", "", "a", "A", "a/b", "en/docs", "ja/docs", "ignored", ".hidden"];
const NAMES: [&str; 8] = ["one", "One", "two", "three", "index", "_index", "My Note", "嵐"];
const LINKS: [&str; 4] = ["link.md", "Link.md", "ldir", "a/ldir"];
const PATTERNS: [&str; 5] = ["ignored/\n", "two.md\nignored\n", "a/\n!a/b/\n", "*.md\n!one.md\n", ""];

/// Does so many operations and says which changed something.
pub(super) fn apply(vault: &Path, random: &mut Random, count: usize) -> io::Result<Vec<String>> {
    let mut done = Vec::new();
    while done.len() < count {
        let operation = Operation::any(random);
        match operation.apply(vault) {
            Ok(()) => done.push(format!("{operation:?}")),
            Err(error) if is_refusal(&error) => {}
            Err(error) => return Err(error),
        }
        // Now and then the watcher sees what was done before the next.
        if random.below(4) == 0 {
            thread::sleep(Duration::from_millis(random.below(60) as u64));
        }
    }
    Ok(done)
}

#[derive(Debug)]
enum Operation {
    Write {
        path: String,
        text: String,
    },
    Remove {
        path: String,
    },
    RemoveFolder {
        path: &'static str,
    },
    Rename {
        from: String,
        to: String,
    },
    /// With the target as it stands in the link.
    Link {
        path: &'static str,
        target: String,
    },
    Ignore {
        patterns: &'static str,
    },
}

impl Operation {
    fn any(random: &mut Random) -> Self {
        match random.below(16) {
            0..=6 => Self::Write { path: note(random), text: text(random) },
            7..=8 => Self::Remove { path: note(random) },
            9 => Self::RemoveFolder { path: pick(random, &FOLDERS) },
            10 => Self::Rename { from: note(random), to: note(random) },
            11 => Self::Rename { from: pick(random, &FOLDERS).to_owned(), to: pick(random, &FOLDERS).to_owned() },
            12..=13 => {
                let path = pick(random, &LINKS);
                let target = if path.ends_with(".md") { note(random) } else { pick(random, &FOLDERS).to_owned() };
                let up = if path.contains('/') { "../" } else { "" };
                Self::Link { path, target: format!("{up}{target}") }
            }
            14 => Self::Remove { path: pick(random, &LINKS).to_owned() },
            _ => Self::Ignore { patterns: pick(random, &PATTERNS) },
        }
    }

    fn apply(&self, vault: &Path) -> io::Result<()> {
        let make_folder_of = |path: &str| match vault.join(path).parent() {
            Some(folder) => fs::create_dir_all(folder),
            None => Ok(()),
        };
        match self {
            Self::Write { path, text } => {
                make_folder_of(path)?;
                // As most editors do: a link in its place is replaced, not written through.
                let temporary = vault.join(format!("{path}~"));
                fs::write(&temporary, text)?;
                fs::rename(temporary, vault.join(path))
            }
            Self::Remove { path } => fs::remove_file(vault.join(path)),
            Self::RemoveFolder { path: "" } => Err(io::ErrorKind::NotFound.into()),
            Self::RemoveFolder { path } => fs::remove_dir_all(vault.join(path)),
            Self::Rename { from, to } if from.is_empty() || to.is_empty() || from == to => {
                Err(io::ErrorKind::NotFound.into())
            }
            Self::Rename { from, to } => {
                make_folder_of(to)?;
                fs::rename(vault.join(from), vault.join(to))
            }
            Self::Link { path, target } => {
                make_folder_of(path)?;
                symlink(if target.is_empty() { "." } else { target }, vault.join(path))
            }
            Self::Ignore { patterns } => fs::write(vault.join(".gitignore"), patterns),
        }
    }
}

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[random.below(from.len())]
}

fn note(random: &mut Random) -> String {
    let (folder, name) = (pick(random, &FOLDERS), pick(random, &NAMES));
    if folder.is_empty() { format!("{name}.md") } else { format!("{folder}/{name}.md") }
}

fn text(random: &mut Random) -> String {
    let mut text = match random.below(6) {
        0 => format!("---\naliases: [{}]\nslug: {}\n---\n", pick(random, &NAMES), pick(random, &NAMES).to_lowercase()),
        1 => format!("---\ntitle: {}\n---\n", pick(random, &NAMES)),
        _ => String::new(),
    };
    for _ in 0..random.below(30) {
        let (folder, name) = (pick(random, &FOLDERS), pick(random, &NAMES));
        match random.below(12) {
            0 => text.push_str(&format!("[[{name}]] ")),
            1 => text.push_str(&format!("[x](</{folder}/{name}/>) ")),
            2 => text.push_str(&format!("[y](<{name}.md>) ")),
            3 => text.push_str(&format!("#{} ", pick(random, &TAGS))),
            4 => text.push_str("\n\n## anchor\n\n"),
            _ => text.push_str(["anchor ", "storm ", "knot ", "嵐の夜 "][random.below(4)]),
        }
    }
    text
}

/// Whether an error says that an operation does not fit what is there.
fn is_refusal(error: &io::Error) -> bool {
    use io::ErrorKind::{
        AlreadyExists, DirectoryNotEmpty, InvalidInput, IsADirectory, NotADirectory, NotFound, ResourceBusy,
    };
    let refusals =
        [AlreadyExists, DirectoryNotEmpty, InvalidInput, IsADirectory, NotADirectory, NotFound, ResourceBusy];
    // Too many links on the way.
    refusals.contains(&error.kind()) || error.raw_os_error() == Some(40)
}
