//! A vault in a temporary folder, and the program run on it with nothing of this machine's environment.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A vault of a test's own.
pub(crate) struct Sandbox {
    folder: tempfile::TempDir,
}

/// The exit code and the output of a run.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    root: PathBuf,
}

impl Sandbox {
    /// A copy of the vault in `examples/`.
    pub(crate) fn example() -> Self {
        let sandbox = Self::empty();
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/vault"), &sandbox.root());
        sandbox
    }

    /// The files of one text: `//- notes/a.md`, then what is in it.
    pub(crate) fn of(files: &str) -> Self {
        let sandbox = Self::empty();
        for file in files.split("//- ").skip(1) {
            let (path, text) = file.split_once('\n').expect("a path ends with its line");
            sandbox.write(path.trim(), text);
        }
        sandbox
    }

    fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("vault")).unwrap();
        Self { folder }
    }

    /// The vault's folder.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("vault")
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let file = self.root().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.root().join(path)).unwrap()
    }

    /// Every file and its bytes, a link and where it leads; what is below `.quipu/` left out.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        collect(&self.root(), &mut files);
        files
    }

    /// The program, to be started in the vault's folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
        command.args(arguments).current_dir(self.root()).env_clear().env("HOME", self.folder.path());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.ran(self.command(arguments).stdin(Stdio::null()).output().unwrap())
    }

    pub(crate) fn run_with_stdin(&self, arguments: &[&str], stdin: &str) -> Ran {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
        self.ran(child.wait_with_output().unwrap())
    }

    /// An output with the exit code, as text.
    pub(crate) fn ran(&self, output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            root: self.root(),
        }
    }
}

impl Ran {
    /// The answer as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self}"))
    }

    /// Fails unless the exit code is this one.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = self.root.display().to_string();
        let code = self.code.map_or("killed".to_owned(), |code| code.to_string());
        let text = format!("exit code {code}\n----- stdout\n{}----- stderr\n{}", self.stdout, self.stderr);
        f.write_str(&text.replace(&root, "[VAULT]"))
    }
}

/// Compares what a run gave with the snapshot of this name; times and durations are left out.
#[track_caller]
pub(crate) fn check(name: &str, ran: &Ran) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_snapshot_path("snapshots");
    settings.set_omit_expression(true);
    settings.add_filter(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "[TIME]");
    settings.add_filter(r"\d{8}T\d{6}\.\d+Z-\d{3}", "[STAMP]");
    settings.add_filter(r#"("ms":|in )\d+(\.\d+)?( ms| s)?"#, "$1[DURATION]");
    settings.add_filter(r"(index, )[\d.]+ [kMG]?B", "$1[SIZE]");
    settings.bind(|| insta::assert_snapshot!(name, ran.to_string()));
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if entry.file_type().unwrap().is_dir() {
            // A developer may have run the program on the example itself.
            if name != ".quipu" {
                copy(&entry.path(), &to.join(name));
            }
        } else {
            std::fs::copy(entry.path(), to.join(name)).unwrap();
        }
    }
}

fn collect(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_symlink() {
            files.insert(entry.path(), std::fs::read_link(entry.path()).unwrap().into_os_string().into_encoded_bytes());
        } else if kind.is_dir() {
            if entry.file_name() != ".quipu" {
                collect(&entry.path(), files);
            }
        } else {
            files.insert(entry.path(), std::fs::read(entry.path()).unwrap());
        }
    }
}
