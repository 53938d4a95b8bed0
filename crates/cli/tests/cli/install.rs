//! `quipu install`: in a home folder of the test's own.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::sandbox::{Ran, Sandbox};

const CLIENTS: [(&str, &str); 10] = [
    ("claude-code", ".claude.json"),
    ("claude-desktop", ".config/Claude/claude_desktop_config.json"),
    ("cursor", ".cursor/mcp.json"),
    ("vscode", ".config/Code/User/mcp.json"),
    ("windsurf", ".codeium/windsurf/mcp_config.json"),
    ("zed", ".config/zed/settings.json"),
    ("codex", ".codex/config.toml"),
    ("gemini", ".gemini/settings.json"),
    ("opencode", ".config/opencode/opencode.json"),
    ("lm-studio", ".lmstudio/mcp.json"),
];

/// A vault, and the home folder it lies in.
struct HomeSandbox(Sandbox);

impl HomeSandbox {
    fn new() -> Self {
        Self(Sandbox::of("//- a.md\nx\n"))
    }

    fn home(&self, path: &str) -> PathBuf {
        self.0.root().parent().unwrap().join(path)
    }

    fn put(&self, path: &str, text: &str) {
        std::fs::create_dir_all(self.home(path).parent().unwrap()).unwrap();
        std::fs::write(self.home(path), text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.home(path)).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        self.0.run(&[&["install"], arguments].concat())
    }

    fn backups(&self, path: &str) -> Vec<PathBuf> {
        let folder = self.home(path);
        let files = std::fs::read_dir(folder.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|file| file.extension().is_some_and(|extension| extension == "bak")).collect()
    }
}

#[cfg(target_os = "linux")]
#[test]
fn install_and_uninstall_work_for_every_client() {
    let desk = HomeSandbox::new();
    let vault = desk.0.root().display().to_string();
    for (client, file) in CLIENTS {
        let ran = desk.run(&[client]).expect(0);
        assert!(ran.stdout.contains("is connected"), "{ran}");
        let text = desk.read(file);
        assert!(text.contains(env!("CARGO_BIN_EXE_quipu")) && text.contains(&vault), "{client}: {text}");
        assert!(desk.backups(file).is_empty(), "there was nothing to keep");
    }
    let listed = desk.run(&["--list", "--json"]).expect(0).json();
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), CLIENTS.len());
    assert!(listed.iter().all(|row| row["state"] == "ok" && row["vault"] == json!(vault)), "{listed:?}");
    for (client, file) in CLIENTS {
        desk.run(&["--remove", client]).expect(0);
        assert!(!desk.read(file).contains("quipu\""), "{client}");
        assert_eq!(desk.backups(file).len(), 1, "of what was there before it was taken out");
    }
    assert_eq!(desk.run(&["--list", "--json"]).expect(0).json(), json!([]));
}

#[test]
fn pipe_in_place_of_the_settings_does_not_block() {
    let desk = HomeSandbox::new();
    std::fs::create_dir_all(desk.home(".cursor")).unwrap();
    let pipe = desk.home(".cursor/mcp.json");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let ran = desk.run(&["cursor"]).expect(1);
    assert!(ran.stderr.contains("cannot read ") && ran.stderr.contains("mcp.json: not a regular file"), "{ran}");
}

#[test]
fn entries_use_the_keys_of_each_client() {
    let desk = HomeSandbox::new();
    let vault = desk.0.root().display().to_string();
    let program = env!("CARGO_BIN_EXE_quipu");
    let written = |client: &str, file: &str| -> Value {
        desk.run(&[client]).expect(0);
        serde_json::from_str(&desk.read(file)).unwrap()
    };
    let essential = ["--toolsets", "essential"];
    let args = json!(["serve", vault, essential[0], essential[1]]);
    let plain = json!({ "command": program, "args": args });
    assert_eq!(written("cursor", ".cursor/mcp.json"), json!({ "mcpServers": { "quipu": plain } }));
    assert_eq!(written("zed", ".config/zed/settings.json"), json!({ "context_servers": { "quipu": plain } }));
    let typed = json!({ "type": "stdio", "command": program, "args": args });
    assert_eq!(written("claude-code", ".claude.json"), json!({ "mcpServers": { "quipu": typed } }));
    let listed =
        json!({ "type": "local", "command": [program, "serve", vault, essential[0], essential[1]], "enabled": true });
    assert_eq!(written("opencode", ".config/opencode/opencode.json"), json!({ "mcp": { "quipu": listed } }));
    desk.run(&["cursor", "--name", "reading", "--", "--read-only"]).expect(0);
    let both: Value = serde_json::from_str(&desk.read(".cursor/mcp.json")).unwrap();
    assert_eq!(
        both["mcpServers"]["reading"]["args"],
        json!(["serve", vault, "--read-only", essential[0], essential[1]])
    );
    assert_eq!(both["mcpServers"]["quipu"], plain);
}

#[test]
fn existing_settings_stay_and_are_backed_up() {
    let desk = HomeSandbox::new();
    let file = ".config/zed/settings.json";
    let text = "// Zed\n{\n  \"theme\": \"One\", // dark\n  \"context_servers\": {\n    \"other\": { \"command\": \"x\" },\n  },\n}\n";
    desk.put(file, text);
    std::fs::set_permissions(desk.home(file), std::fs::Permissions::from_mode(0o640)).unwrap();

    let shown = desk.run(&["zed", "--dry-run"]).expect(0);
    assert!(shown.stdout.contains("+ ") && shown.stdout.contains("nothing was changed"), "{shown}");
    assert_eq!(desk.read(file), text);

    let ran = desk.run(&["zed"]).expect(0);
    assert!(ran.stdout.contains("the previous file is kept in ~/"), "{ran}");
    let with = desk.read(file);
    assert!(
        with.contains("// Zed\n")
            && with.contains("\"One\", // dark")
            && with.contains("\"other\": { \"command\": \"x\" },"),
        "{with}"
    );
    assert_eq!(desk.home(file).metadata().unwrap().permissions().mode() & 0o777, 0o640);
    let backups = desk.backups(file);
    assert_eq!(backups.len(), 1);
    assert_eq!(std::fs::read_to_string(&backups[0]).unwrap(), text);

    let again = desk.run(&["zed"]).expect(0);
    assert!(again.stdout.contains("is already connected"), "{again}");
    assert_eq!((desk.read(file), desk.backups(file).len()), (with, 1));
}

#[test]
fn invalid_settings_file_is_unchanged() {
    let desk = HomeSandbox::new();
    for (client, file, text) in [
        ("cursor", ".cursor/mcp.json", "{ \"mcpServers\": { broken"),
        ("gemini", ".gemini/settings.json", "[]"),
        ("codex", ".codex/config.toml", "[mcp_servers\n"),
        ("vscode", ".config/Code/User/mcp.json", "{\"servers\": []}"),
    ] {
        desk.put(file, text);
        for arguments in [&[client][..], &["--remove", client]] {
            let ran = desk.run(arguments).expect(1);
            assert!(ran.stderr.contains(file) && ran.stderr.contains("then run this again"), "{ran}");
        }
        assert_eq!(desk.read(file), text);
        assert!(desk.backups(file).is_empty());
    }
}

#[test]
fn server_entry_of_another_program_is_not_replaced_without_force() {
    let desk = HomeSandbox::new();
    let theirs = json!({ "mcpServers": { "quipu": { "command": "npx", "args": ["-y", "other"] }, "url": { "url": "http://x" } } });
    desk.put(".cursor/mcp.json", &theirs.to_string());
    for arguments in [&["cursor"][..], &["--remove", "cursor"], &["cursor", "--name", "url"], &["cursor", "--dry-run"]]
    {
        let ran = desk.run(arguments).expect(1);
        assert!(ran.stderr.contains("has a server called") && ran.stderr.contains("--force"), "{ran}");
    }
    assert_eq!(desk.read(".cursor/mcp.json"), theirs.to_string());
    desk.run(&["cursor", "--force"]).expect(0);
    assert!(desk.read(".cursor/mcp.json").contains(env!("CARGO_BIN_EXE_quipu")));
    // One of ours, wherever it was, is replaced.
    desk.put(".cursor/mcp.json", r#"{"mcpServers": {"quipu": {"command": "/old/quipu", "args": ["serve", "/old"]}}}"#);
    desk.run(&["cursor"]).expect(0);
}

#[test]
fn renamed_program_recognizes_its_own_entry() {
    let desk = HomeSandbox::new();
    let ours = PathBuf::from(env!("CARGO_BIN_EXE_quipu"));
    // Beside the program: a second name for a file must be on the same disk.
    let folder = tempfile::tempdir_in(ours.parent().unwrap()).unwrap();
    let program = folder.path().join("quipu-1.2");
    std::fs::hard_link(ours, &program).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("install").args(arguments).current_dir(desk.0.root()).env_clear().env("HOME", desk.home(""));
        desk.0.ran(command.output().unwrap())
    };
    run(&["cursor"]).expect(0);
    run(&["cursor", "--", "--read-only"]).expect(0);
    assert!(desk.read(".cursor/mcp.json").contains("--read-only"));
    assert_eq!(run(&["--list", "--json"]).expect(0).json()[0]["program"], json!(program));
    run(&["--remove", "cursor"]).expect(0);
}

#[test]
fn existing_entry_keeps_its_flags_and_other_keys() {
    let desk = HomeSandbox::new();
    let vault = desk.0.root().display().to_string();
    let entry = |file: &str| -> Value {
        let text = desk.read(file);
        serde_json::from_str::<Value>(&text).unwrap()["mcpServers"]["quipu"].clone()
    };
    let file = ".cursor/mcp.json";
    let args = json!(["serve", "/old", "--vault", "/older", "--toolsets", "notes", "--read-only"]);
    let theirs = json!({ "command": "/old/quipu", "args": args, "env": { "A": "1" }, "disabled": true });
    desk.put(file, &json!({ "mcpServers": { "quipu": theirs } }).to_string());

    let ran = desk.run(&["cursor"]).expect(0);
    assert!(ran.stdout.contains("it keeps its flags: --toolsets notes --read-only;"), "{ran}");
    let args = json!(["serve", vault, "--toolsets", "notes", "--read-only"]);
    let program = env!("CARGO_BIN_EXE_quipu");
    assert_eq!(entry(file), json!({ "command": program, "args": args, "env": { "A": "1" }, "disabled": true }));
    let again = desk.run(&["cursor", "--json"]).expect(0).json();
    assert_eq!(
        (&again["changed"], &again["kept_flags"]),
        (&json!(false), &json!(["--toolsets", "notes", "--read-only"]))
    );

    desk.run(&["cursor", "--", "--no-watch"]).expect(0);
    assert_eq!(entry(file)["args"], json!(["serve", vault, "--no-watch"]), "others that were asked for");
    desk.run(&["cursor", "--force"]).expect(0);
    assert_eq!(entry(file)["args"], json!(["serve", vault, "--toolsets", "essential"]), "as a new one");
    desk.run(&["cursor", "--toolsets", "all"]).expect(0);
    assert_eq!(entry(file), json!({ "command": program, "args": ["serve", vault] }));
    desk.run(&["cursor"]).expect(0);
    assert_eq!(entry(file)["args"], json!(["serve", vault]), "it stays as it was chosen");

    // As no server starts: neither dropped nor kept without a word.
    let odd = json!({ "command": "quipu", "args": ["serve", "--read-only", "/old"] });
    desk.put(file, &json!({ "mcpServers": { "quipu": odd } }).to_string());
    let ran = desk.run(&["cursor"]).expect(2);
    assert!(ran.stderr.contains("cannot keep the flags") && ran.stderr.contains("--force"), "{ran}");

    desk.put(
        ".codex/config.toml",
        "[mcp_servers.quipu]\ncommand = \"quipu\"\nargs = [\"serve\", \"/old\", \"--read-only\"]\n",
    );
    desk.run(&["codex"]).expect(0);
    assert!(desk.read(".codex/config.toml").contains(&format!("args = [\"serve\", \"{vault}\", \"--read-only\"]")));
    desk.put(
        ".config/opencode/opencode.json",
        r#"{"mcp": {"quipu": {"type": "local", "command": ["quipu", "serve", "/old"], "enabled": false}}}"#,
    );
    desk.run(&["opencode"]).expect(0);
    assert!(desk.read(".config/opencode/opencode.json").contains("\"enabled\": false"));
}

#[test]
fn set_uid_and_foreign_write_permissions_of_settings_are_not_copied() {
    let desk = HomeSandbox::new();
    desk.put("work/.git/HEAD", "ref: refs/heads/main\n");
    let (file, settings) = ("work/.mcp.json", desk.home("work/.mcp.json"));
    let mode = |file: &Path| file.metadata().unwrap().permissions().mode() & 0o7777;
    let connect = |arguments: &[&str]| {
        let mut command = desk.0.command(&[&["install", "--no-test"], arguments].concat());
        desk.0.ran(command.current_dir(desk.home("work")).output().unwrap()).expect(0)
    };
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        quipu_testkit::skip("only root can give a file to another account");
    }
    for (owner, kept) in [(None, 0o777), (Some(64_001), 0o755)].into_iter().take(if is_root { 2 } else { 1 }) {
        desk.put(file, "{}\n");
        std::os::unix::fs::chown(&settings, owner, None).unwrap();
        std::fs::set_permissions(&settings, PermissionsExt::from_mode(0o6777)).unwrap();
        let ran = connect(&["claude-code", "--scope", "project", "--json"]).json();
        let backup = desk.home("").join(ran["backup"].as_str().unwrap().trim_start_matches("~/"));
        assert_eq!((mode(&settings), mode(&backup)), (kept, 0o600), "{owner:?}: {ran}");
    }
    desk.put(".cursor/mcp.json", "{}\n");
    std::fs::set_permissions(desk.home(".cursor/mcp.json"), PermissionsExt::from_mode(0o4777)).unwrap();
    connect(&["cursor"]);
    let backups = desk.backups(".cursor/mcp.json");
    assert_eq!((mode(&desk.home(".cursor/mcp.json")), mode(&backups[0])), (0o777, 0o600));
}

#[test]
fn concurrent_installs_lose_no_entry() {
    let desk = HomeSandbox::new();
    desk.put(".cursor/mcp.json", "{}\n");
    let names: Vec<String> = (0..10).map(|number| format!("vault{number}")).collect();
    let install = |name: &String| {
        let mut command = desk.0.command(&["install", "cursor", "--name", name]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
    };
    let running: Vec<_> = names.iter().map(install).collect();
    for child in running {
        desk.0.ran(child.wait_with_output().unwrap()).expect(0);
    }
    let settings: Value = serde_json::from_str(&desk.read(".cursor/mcp.json")).unwrap();
    let mut there: Vec<&String> = settings["mcpServers"].as_object().unwrap().keys().collect();
    there.sort();
    assert_eq!(there, names.iter().collect::<Vec<_>>());
    assert_eq!(desk.backups(".cursor/mcp.json").len(), 10, "what each of them replaced");
}

#[test]
fn line_ends_are_preserved() {
    let desk = HomeSandbox::new();
    for (client, file, text) in [
        ("codex", ".codex/config.toml", "# mine\r\nmodel = \"o\"\r\n\r\n[z]\r\na = 1\r\n"),
        ("cursor", ".cursor/mcp.json", "{\r\n  \"a\": 1\r\n}\r\n"),
    ] {
        desk.put(file, text);
        desk.run(&[client]).expect(0);
        let with = desk.read(file);
        assert!(with.contains("quipu") && !with.replace("\r\n", "").contains('\n'), "{with:?}");
        desk.run(&["--remove", client]).expect(0);
        assert!(!desk.read(file).replace("\r\n", "").contains('\n'));
    }
    assert_eq!(desk.read(".codex/config.toml"), "# mine\r\nmodel = \"o\"\r\n\r\n[z]\r\na = 1\r\n");
}

#[test]
fn dangling_symlink_is_unchanged() {
    let desk = HomeSandbox::new();
    std::fs::create_dir_all(desk.home(".cursor")).unwrap();
    let link = desk.home(".cursor/mcp.json");
    std::os::unix::fs::symlink("../dotfiles/mcp.json", &link).unwrap();
    for arguments in [&["cursor"][..], &["cursor", "--dry-run"], &["cursor", "--force"]] {
        let ran = desk.run(arguments).expect(1);
        assert!(ran.stderr.contains("is a link to ../dotfiles/mcp.json, which does not exist"), "{ran}");
    }
    assert!(link.symlink_metadata().unwrap().is_symlink());
}

#[cfg(target_os = "linux")]
#[test]
fn vault_with_a_non_utf8_name_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let desk = HomeSandbox::new();
    let vault = desk.home("x").with_file_name(std::ffi::OsStr::from_bytes(b"n\xf6tes"));
    std::fs::create_dir(&vault).unwrap();
    let ran = desk.0.ran(desk.0.command(&["install", "cursor", "--vault"]).arg(&vault).output().unwrap()).expect(2);
    assert!(ran.stderr.contains("it is not UTF-8") && ran.stderr.contains("hint: rename it"), "{ran}");
    assert!(!desk.home(".cursor/mcp.json").exists());
}

#[test]
fn flags_that_serve_would_refuse_are_refused() {
    let desk = HomeSandbox::new();
    for flags in
        [&["--read-onyl"][..], &["--toolsets", "nonsense"], &["elsewhere"], &["--http", "127.0.0.1:1"], &["--help"]]
    {
        let ran = desk.run(&[&["cursor", "--"], flags].concat()).expect(2);
        assert!(ran.stderr.contains("error: "), "{ran}");
        assert!(!desk.home(".cursor/mcp.json").exists(), "{ran}");
    }
    desk.run(&["cursor", "--", "--read-only", "--toolsets", "notes,memory"]).expect(0);
}

#[test]
fn settings_with_a_duplicate_section_are_unchanged() {
    let desk = HomeSandbox::new();
    let text = r#"{"mcpServers": {"a": {"command": "x"}}, "mcpServers": {"b": {"command": "y"}}}"#;
    desk.put(".cursor/mcp.json", text);
    let ran = desk.run(&["cursor"]).expect(1);
    assert!(ran.stderr.contains("`mcpServers` is in the file twice"), "{ran}");
    assert_eq!(desk.read(".cursor/mcp.json"), text);
}

#[test]
fn byte_order_mark_is_preserved() {
    let desk = HomeSandbox::new();
    for (client, file, text) in
        [("cursor", ".cursor/mcp.json", "\u{feff}{ \"a\": 1 }\n"), ("codex", ".codex/config.toml", "\u{feff}a = 1\n")]
    {
        desk.put(file, text);
        desk.run(&[client]).expect(0);
        let with = desk.read(file);
        assert!(with.starts_with('\u{feff}') && with.contains("quipu"), "{with:?}");
        desk.run(&["--remove", client]).expect(0);
        assert!(desk.read(file).starts_with('\u{feff}'));
    }
}

#[test]
fn symlink_stays_a_symlink() {
    let desk = HomeSandbox::new();
    desk.put("dotfiles/mcp.json", "{}\n");
    std::fs::create_dir_all(desk.home(".cursor")).unwrap();
    std::os::unix::fs::symlink(desk.home("dotfiles/mcp.json"), desk.home(".cursor/mcp.json")).unwrap();
    desk.run(&["cursor"]).expect(0);
    assert!(desk.home(".cursor/mcp.json").symlink_metadata().unwrap().is_symlink());
    assert!(desk.read("dotfiles/mcp.json").contains("quipu"));
}

#[test]
fn outdated_program_path_is_reported() {
    let desk = HomeSandbox::new();
    let gone = json!({ "command": "/nowhere/quipu", "args": ["serve", "/nowhere/notes"] });
    let moved = json!({ "command": env!("CARGO_BIN_EXE_quipu"), "args": ["serve", "/nowhere/notes"] });
    let other = json!({ "command": "npx", "args": ["serve", "x"] });
    desk.put(
        ".cursor/mcp.json",
        &json!({ "mcpServers": { "gone": gone, "moved": moved, "other": other } }).to_string(),
    );
    desk.put(".gemini/settings.json", "{ broken");
    let ran = desk.run(&["--list", "--json"]).expect(1);
    let states: Vec<Value> = ran.json().as_array().unwrap().iter().map(|row| row["state"].clone()).collect();
    assert_eq!(states, [json!("program_missing"), json!("vault_missing")]);
    assert!(ran.stderr.contains("Gemini CLI") && ran.stderr.contains("fix it in an editor"), "{ran}");
    let shown = desk.run(&["--list"]).expect(1).stdout;
    assert!(shown.contains("; reconnect it: quipu install cursor --name gone --vault /nowhere/notes\n"), "{shown}");
    assert!(shown.contains("; reconnect it: quipu install cursor --name moved --vault DIR\n"), "{shown}");
}

#[test]
fn install_starts_the_server_and_counts_its_tools() {
    let desk = HomeSandbox::new();
    let ran = desk.run(&["cursor"]).expect(0);
    assert!(ran.stdout.contains("the server answered and lists "), "{ran}");
    assert!(ran.stdout.contains("it offers the essential tools; --toolsets all offers every tool"), "{ran}");
    let again = desk.run(&["cursor", "--json"]).expect(0).json();
    assert!(again["changed"] == false && (10..=14).contains(&again["tools"].as_u64().unwrap()), "{again}");
    let all = desk.run(&["cursor", "--json", "--toolsets", "all"]).expect(0).json();
    assert!(all["changed"] == true && all["tools"].as_u64() > Some(40), "{all}");
    let few = desk.run(&["cursor", "--json", "--", "--toolsets", "docs"]).expect(0).json();
    assert_eq!(few["tools"], 3);
    assert_eq!(desk.run(&["cursor", "--json", "--no-test"]).expect(0).json()["tools"], Value::Null);

    // A server that does not start: its settings are wrong, which only it finds out.
    desk.0.write(".quipu/config.toml", "[embedding]\nprovider = \"olama\"\n");
    let ran = desk.run(&["cursor"]).expect(1);
    assert!(ran.stderr.starts_with("error: cannot use the server that Cursor starts: "), "{ran}");
    assert!(ran.stderr.contains("olama") || ran.stderr.contains("ollama"), "it says what the server said: {ran}");
    assert!(ran.stderr.contains("hint: run `/") && ran.stderr.contains("--no-test"), "{ran}");
    assert!(desk.read(".cursor/mcp.json").contains("quipu"), "the entry stays");
}

#[test]
fn project_settings_are_portable() {
    let desk = HomeSandbox::new();
    let project = desk.home("work");
    desk.put("work/.git/HEAD", "ref: refs/heads/main\n");
    desk.put("work/docs/a.md", "Alpha\n");
    let path = PathBuf::from(env!("CARGO_BIN_EXE_quipu")).parent().unwrap().to_owned();
    let run = |arguments: &[&str]| {
        let mut command = desk.0.command(&[&["install", "--scope", "project"], arguments].concat());
        desk.0.ran(command.current_dir(project.join("docs")).env("PATH", &path).output().unwrap())
    };
    for (client, file, section, vault) in [
        ("claude-code", "work/.mcp.json", "mcpServers", "docs"),
        ("cursor", "work/.cursor/mcp.json", "mcpServers", "${workspaceFolder}/docs"),
        ("vscode", "work/.vscode/mcp.json", "servers", "${workspaceFolder}/docs"),
    ] {
        let ran = run(&[client]).expect(0);
        let is_tested = ran.stdout.contains("the server answered and lists ");
        assert!(is_tested && ran.stdout.contains("commit it to share"), "{ran}");
        let settings: Value = serde_json::from_str(&desk.read(file)).unwrap();
        let server = &settings[section]["quipu"];
        assert_eq!(
            (&server["command"], &server["args"]),
            (&json!("quipu"), &json!(["serve", vault, "--toolsets", "essential"])),
            "{settings}"
        );
        assert_eq!(desk.home(file).metadata().unwrap().permissions().mode() & 0o777, 0o644);
    }
    assert!(!desk.home(".cursor/mcp.json").exists() && !desk.home(".claude.json").exists());
    let mut list = desk.0.command(&["install", "--list", "--json"]);
    let rows = desk.0.ran(list.current_dir(&project).output().unwrap()).expect(0).json();
    assert!(rows.as_array().unwrap().iter().all(|row| row["scope"] == "project" && row["state"] == "ok"), "{rows}");
    assert_eq!(rows.as_array().unwrap().len(), 3);
    run(&["--remove", "cursor"]).expect(0);
    assert!(desk.backups("work/.cursor/mcp.json").is_empty(), "copies of the project's settings are kept elsewhere");

    let outside = run(&["claude-code", "--no-test", "--vault", desk.0.root().to_str().unwrap()]).expect(0);
    assert!(outside.stderr.contains("is outside the project"), "{outside}");
    let refused = run(&["zed"]).expect(2);
    assert!(refused.stderr.contains("cannot use --scope project with Zed"), "{refused}");
    let mut nowhere = desk.0.command(&["install", "cursor", "--scope", "project"]);
    let ran = desk.0.ran(nowhere.current_dir(project.join("docs")).env("PATH", "/nonexistent").output().unwrap());
    let ran = ran.expect(1);
    assert!(
        ran.stderr.starts_with("error: `quipu` is not in the PATH: Cursor starts the server of a project"),
        "{ran}"
    );
    assert!(
        ran.stderr.contains("teammate") && ran.stderr.contains(&format!("add {} to the PATH", path.display())),
        "{ran}"
    );
    assert!(!ran.stdout.contains("is connected"), "{ran}");
    let mut untested = desk.0.command(&["install", "vscode", "--scope", "project", "--no-test"]);
    let ran = desk.0.ran(untested.current_dir(project.join("docs")).env("PATH", "/nonexistent").output().unwrap());
    assert!(ran.expect(0).stderr.contains("warning: `quipu` is not in the PATH"));
}

#[test]
fn planted_fields_of_a_project_entry_are_removed_and_named() {
    let desk = HomeSandbox::new();
    desk.put("work/.git/HEAD", "ref: refs/heads/main\n");
    desk.put("work/docs/a.md", "Alpha\n");
    let file = "work/.mcp.json";
    let args = json!(["serve", "old", "--toolsets", "notes", "--read-only"]);
    let planted = |args: &Value| {
        let entry = json!({
            "type": "stdio", "command": "quipu", "args": args, "env": { "LD_PRELOAD": "./x.so" }, "cwd": "/x", "disabled": true
        });
        json!({ "mcpServers": { "quipu": entry } }).to_string()
    };
    let run = |arguments: &[&str]| {
        let all = [&["install", "claude-code", "--scope", "project", "--no-test"], arguments].concat();
        let mut command = desk.0.command(&all);
        desk.0.ran(command.current_dir(desk.home("work/docs")).output().unwrap()).expect(0)
    };
    let good = json!(["serve", "docs", "--toolsets", "notes", "--read-only"]);
    for args in [&args, &good] {
        desk.put(file, &planted(args));
        let ran = run(&["--dry-run"]);
        assert!(ran.stdout.contains("LD_PRELOAD") && ran.stdout.contains("nothing was changed"), "{ran}");
        assert!(ran.stderr.contains("the entry of the project loses env, cwd:"), "{ran}");
        assert_eq!(desk.read(file), planted(args));
        let ran = run(&["--json"]);
        assert_eq!(ran.json()["removed"], json!(["env", "cwd"]), "{ran}");
        let entry = json!({ "type": "stdio", "command": "quipu", "args": good, "disabled": true });
        assert_eq!(serde_json::from_str::<Value>(&desk.read(file)).unwrap()["mcpServers"]["quipu"], entry);
        let again = run(&["--json"]).json();
        assert_eq!((&again["changed"], &again["removed"]), (&json!(false), &json!([])));
    }
}

#[test]
fn project_settings_that_are_links_out_of_the_project_are_refused() {
    let desk = HomeSandbox::new();
    desk.put("work/.git/HEAD", "ref: refs/heads/main\n");
    let entry = json!({ "command": "quipu", "args": ["serve", "/notes"], "env": { "A": "1" } });
    let own = json!({ "mcpServers": { "quipu": entry } }).to_string();
    desk.put(".claude.json", &own);
    desk.put(".cursor/mcp.json", &own);
    std::os::unix::fs::symlink("../.claude.json", desk.home("work/.mcp.json")).unwrap();
    std::os::unix::fs::symlink("../.cursor", desk.home("work/.cursor")).unwrap();
    std::os::unix::fs::symlink("..", desk.home("work/.vscode")).unwrap();
    for (client, file) in [("claude-code", ".claude.json"), ("cursor", ".cursor/mcp.json"), ("vscode", "mcp.json")] {
        for remove in [&[][..], &["--remove"]] {
            let all = [&["install", client, "--scope", "project"], remove].concat();
            let ran = desk.0.ran(desk.0.command(&all).current_dir(desk.home("work")).output().unwrap()).expect(1);
            assert!(ran.stderr.contains("it is a link out of the project"), "{ran}");
        }
        assert!(!desk.home(file).exists() || desk.read(file) == own);
    }
}

#[test]
fn without_a_client_the_list_gives_a_command_that_connects_one() {
    let desk = HomeSandbox::new();
    let ran = desk.run(&["--list"]).expect(0);
    let vault = desk.0.root().display().to_string();
    let command = format!("quipu install claude-code --vault {vault}");
    assert!(ran.stderr.contains(&format!("`{command}` connects Claude Code; ")), "{ran}");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    desk.0.ran(desk.0.command(&words).current_dir(desk.home("")).output().unwrap()).expect(0);
    assert!(desk.read(".claude.json").contains(&vault));
}

#[test]
fn uninstall_names_the_remaining_servers() {
    let desk = HomeSandbox::new();
    desk.run(&["cursor", "--no-test"]).expect(0);
    desk.run(&["cursor", "--no-test", "--name", "my work"]).expect(0);
    let ran = desk.run(&["--remove", "cursor"]).expect(0);
    let stays = "Cursor is still connected by my work; `quipu install --remove cursor --name 'my work'` removes it\n";
    assert!(ran.stdout.contains("quipu is removed from Cursor\n") && ran.stdout.contains(stays), "{ran}");
    let again = desk.run(&["--remove", "cursor"]).expect(0);
    assert!(again.stdout.contains("Cursor has no server called quipu\n") && again.stdout.contains(stays), "{again}");
    let last = desk.run(&["--remove", "cursor", "--name", "my work"]).expect(0);
    assert!(last.stdout.contains("Cursor is no longer connected\n"), "{last}");
}
