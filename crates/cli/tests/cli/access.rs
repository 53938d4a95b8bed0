//! Who may come in, and where notes may go: `token` and `trust`.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sandbox::Sandbox;

#[test]
fn token_is_shown_once_and_stored_as_a_hash() {
    let vault = Sandbox::of("//- a.md\nx\n");
    let made = vault.run(&["token", "new", "--name", "laptop", "--scope", "read", "--json"]).expect(0).json();
    let token = made["token"].as_str().unwrap();
    assert!(token.starts_with("quipu_") && made["scope"] == "read" && made["expired"] == false, "{made}");
    let file = vault.root().join(".quipu/tokens.toml");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!vault.read(".quipu/tokens.toml").contains(&token[6..]));

    let listed = vault.run(&["token", "list"]).expect(0);
    assert!(listed.stdout.contains("laptop  read, created ") && !listed.stdout.contains(&token[6..]), "{listed}");
    assert_eq!(vault.run(&["token", "list", "--json"]).expect(0).json()[0]["changed"], false);
    let kept = vault.read(".quipu/tokens.toml");
    vault.write(".quipu/tokens.toml", kept.replace("\"read\"", "\"admin\""));
    let changed = vault.run(&["token", "list"]).expect(0);
    assert!(
        changed.stdout.contains("laptop  admin, ") && changed.stdout.contains(", rejected: its line in "),
        "{changed}"
    );
    assert_eq!(vault.run(&["token", "list", "--json"]).expect(0).json()[0]["changed"], true);
    vault.write(".quipu/tokens.toml", kept);
    let twice = vault.run(&["token", "new", "--name", "laptop"]).expect(1);
    assert!(twice.stderr.contains("there is a token called laptop"), "{twice}");
    let like_an_id = vault.run(&["token", "new", "--name", "0badcafe"]).expect(2);
    assert!(like_an_id.stderr.contains("eight hexadecimal digits"), "{like_an_id}");
    vault.run(&["token", "revoke", "nobody"]).expect(1);
    vault.run(&["token", "revoke", "laptop"]).expect(0);
    assert_eq!(vault.run(&["token", "list", "--json"]).expect(0).json(), serde_json::json!([]));
    vault.run(&["token", "new", "--name", "x", "--expires", "soon"]).expect(2);
    vault.run(&["token", "new", "--name", "\u{1b}[31m"]).expect(2);
    let provider = vault.run(&["token", "new", "--name", "subject ada"]).expect(1);
    assert!(provider.stderr.contains("identity provider"), "{provider}");
}

#[test]
fn pipe_in_place_of_the_tokens_does_not_block() {
    for name in ["tokens.toml", "own-files.lock", "config.toml"] {
        let vault = Sandbox::of("//- a.md\nx\n");
        std::fs::create_dir_all(vault.root().join(".quipu")).unwrap();
        let pipe = vault.root().join(".quipu").join(name);
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let ran = vault.run(&["token", "new", "--name", "laptop"]);
        assert!(
            ran.stderr.contains(name)
                && (ran.stderr.contains("not a regular file") || ran.stderr.contains("is not a file")),
            "{ran}"
        );
    }
}

#[test]
fn symlink_in_place_of_the_lock_creates_no_file() {
    let vault = Sandbox::of("//- a.md\nx\n");
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("made");
    std::fs::create_dir_all(vault.root().join(".quipu")).unwrap();
    std::os::unix::fs::symlink(&target, vault.root().join(".quipu/own-files.lock")).unwrap();
    for command in [&["token", "new", "--name", "laptop"][..], &["token", "revoke", "laptop"]] {
        let ran = vault.run(command).expect(1);
        assert!(ran.stderr.contains("own-files.lock is a link"), "{ran}");
        assert!(!target.exists(), "{command:?}");
    }
}

/// The whole folder may be a link too.
#[test]
fn symlink_in_place_of_the_own_folder_is_not_followed_by_the_lock() {
    let vault = Sandbox::of("//- a.md\nx\n");
    let elsewhere = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), vault.root().join(".quipu")).unwrap();
    for command in [&["token", "new", "--name", "laptop"][..], &["token", "revoke", "laptop"]] {
        vault.run(command).expect(1);
        assert_eq!(elsewhere.path().read_dir().unwrap().count(), 0, "{command:?}");
    }
}

#[test]
fn a_provider_that_only_the_vault_names_gets_no_notes_until_it_is_allowed() {
    let vault = Sandbox::of("//- a.md\nx\n");
    // No server is there: a connection would fail, and take a while.
    vault.write(".quipu/config.toml", "[embedding]\nprovider = \"openai\"\nurl = \"https://collector.invalid\"\n");
    let said = "cannot send notes to the embedding provider at https://collector.invalid";
    let status = || vault.command(&["status"]).env("QUIPU_EMBEDDING_KEY", "secret").output().map(|ran| vault.ran(ran));
    let ran = status().unwrap().expect(0);
    assert!(ran.stderr.contains(said) && !ran.stderr.contains("secret"), "{ran}");
    let command = format!("quipu trust --vault '{}'", vault.root().display());
    assert!(ran.stderr.contains(&command), "{ran}");

    let allowed = vault.run(&["trust"]).expect(0);
    assert!(allowed.stdout.contains("may be sent to https://collector.invalid"), "{allowed}");
    let ran = status().unwrap().expect(0);
    assert!(!ran.stderr.contains(said), "{ran}");
    // Another address is another matter.
    vault.write(".quipu/config.toml", "[embedding]\nprovider = \"openai\"\nurl = \"https://other.invalid\"\n");
    assert!(status().unwrap().stderr.contains("https://other.invalid"));
    vault.run(&["trust", "--remove"]).expect(0);
    assert_eq!(vault.run(&["trust", "--list", "--json"]).expect(0).json(), serde_json::json!([]));
}

#[test]
fn line_break_in_an_address_forges_no_log_line() {
    let vault = Sandbox::of("//- a.md\nx\n");
    for section in ["embedding", "llm"] {
        let address = "https://collector.invalid/\\nWARN forged\\u001b[2J";
        let settings = format!("[{section}]\nprovider = \"openai\"\nmodel = \"m\"\nurl = \"{address}\"\n");
        vault.write(".quipu/config.toml", settings);
        for arguments in [&["-v", "status"][..], &["trust"], &["-v", "call", "list_nodes"]] {
            let mut command = vault.command(arguments);
            command.env("QUIPU_EMBEDDING_KEY", "secret").env("QUIPU_LLM_KEY", "secret");
            let ran = vault.ran(command.output().unwrap());
            assert!(ran.stderr.contains("invalid"), "{section} {arguments:?}: {ran}");
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(said.lines().all(|line| !line.starts_with("WARN forged")), "{section} {arguments:?}: {ran}");
            assert!(!said.contains('\u{1b}'), "{section} {arguments:?}: {ran}");
        }
    }
}

#[test]
fn trust_refuses_an_invalid_provider_address() {
    let vault = Sandbox::of("//- a.md\nx\n");
    for (url, why) in [
        ("ftp://collector.invalid", "it does not have the form http://host:port"),
        ("https://user:pass@collector.invalid", "it has a user name or a password"),
        ("https://collector.invalid/?to=me", "it has a query"),
    ] {
        vault.write(".quipu/config.toml", format!("[embedding]\nprovider = \"openai\"\nurl = \"{url}\"\n"));
        let ran = vault.run(&["trust"]).expect(2);
        assert!(ran.stderr.contains(why) && !ran.stderr.contains("pass@"), "{ran}");
        // The refusal to send notes is logged before the address is looked at.
        let ran = vault.run(&["status"]);
        assert!(ran.stderr.contains(why) && !format!("{ran}").contains("pass@"), "{ran}");
    }
    assert_eq!(vault.run(&["trust", "--list", "--json"]).expect(0).json(), serde_json::json!([]));
    vault.write(".quipu/config.toml", "[embedding]\nprovider = \"openai\"\n");
    vault.run(&["trust"]).expect(0);
}

#[test]
fn a_provider_that_the_user_names_needs_no_trust() {
    let vault = Sandbox::of("//- a.md\nx\n");
    let warned = |text: &str, variables: &[(&str, &str)]| {
        vault.write(".quipu/config.toml", text);
        let mut command = vault.command(&["status"]);
        command.env("QUIPU_EMBEDDING_KEY", "secret").envs(variables.iter().copied());
        vault.ran(command.output().unwrap()).expect(0).stderr.contains("cannot send notes to the embedding provider")
    };
    let openai = "[embedding]\nprovider = \"openai\"\n";
    assert!(warned(openai, &[]), "its address is known, and still nobody here chose it");
    assert!(!warned(openai, &[("QUIPU_EMBEDDING_PROVIDER", "openai")]));
    assert!(!warned("", &[("QUIPU_EMBEDDING_PROVIDER", "openai"), ("QUIPU_EMBEDDING_URL", "https://x.invalid")]));
    let evil = "[embedding]\nprovider = \"openai\"\nurl = \"https://collector.invalid\"\n";
    assert!(warned(evil, &[("QUIPU_EMBEDDING_PROVIDER", "openai")]), "the user chose a kind, the vault the address");
    assert!(!warned(evil, &[("QUIPU_EMBEDDING_URL", "https://mine.invalid")]));
    let ollama = "[embedding]\nprovider = \"ollama\"\n";
    assert!(warned(ollama, &[]), "any account may listen on loopback");
    assert!(!warned(ollama, &[("QUIPU_EMBEDDING_PROVIDER", "ollama")]));
    assert!(!warned(ollama, &[("QUIPU_EMBEDDING_URL", "http://127.0.0.1:1")]));
}

/// A port that counts connections and closes each; with its address.
fn listener() -> (Arc<AtomicUsize>, String) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let connections = Arc::<AtomicUsize>::default();
    let counted = connections.clone();
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    (connections, url)
}

#[test]
fn loopback_provider_named_only_by_the_vault_needs_trust() {
    let vault = Sandbox::of("//- a.md\nthe secret\n");
    let (connections, url) = listener();
    vault.write(".quipu/config.toml", format!("[embedding]\nprovider = \"ollama\"\nurl = \"{url}\"\n"));
    let ran = vault.run(&["index"]).expect(0);
    let command = format!("quipu trust --vault '{}'", vault.root().display());
    assert!(ran.stderr.contains(&url) && ran.stderr.contains(&command), "{ran}");
    assert_eq!(connections.load(Ordering::SeqCst), 0, "nothing is sent before it is allowed");

    vault.run(&["trust"]).expect(0);
    let ran = vault.run(&["index"]);
    assert!(!ran.stderr.contains("quipu trust"), "{ran}");
    assert_ne!(connections.load(Ordering::SeqCst), 0, "{ran}");
}

#[test]
fn language_model_needs_its_own_trust() {
    let vault = Sandbox::of("//- a.md\nThe secret is in the box under the stairs.\n");
    let (connections, url) = listener();
    let settings = |table: &str| format!("[{table}]\nprovider = \"openai\"\nurl = \"{url}\"\nmodel = \"m\"\n");
    vault.write(".quipu/config.toml", settings("embedding"));
    vault.run(&["trust"]).expect(0);
    vault.write(".quipu/config.toml", settings("llm"));
    let summarize = || {
        let mut command = vault.command(&["call", "summarize_node", r#"{"id": "a.md"}"#]);
        vault.ran(command.env("QUIPU_LLM_KEY", "the-key").output().unwrap()).expect(0)
    };
    let ran = summarize();
    assert!(ran.stderr.contains(&format!("cannot send notes to the language model at {url}")), "{ran}");
    assert!(ran.stdout.contains("extractive") && ran.stdout.contains("under the stairs"), "{ran}");
    assert_eq!(connections.load(Ordering::SeqCst), 0, "a permission for vectors is none for a language model");

    let allowed = vault.run(&["trust"]).expect(0);
    assert!(allowed.stdout.contains(&format!("may be sent to {url} (llm)")), "{allowed}");
    let ran = summarize();
    assert_ne!(connections.load(Ordering::SeqCst), 0, "{ran}");
    assert!(ran.stdout.contains("extractive") && ran.stderr.contains("this answer was made without it"), "{ran}");
    assert!(!ran.stderr.contains("the-key") && !ran.stderr.contains("stairs"), "{ran}");
    let listed = vault.run(&["trust", "--list", "--json"]).expect(0).json();
    assert_eq!((&listed[0]["purpose"], &listed[1]["purpose"]), (&"embedding".into(), &"llm".into()));
    let removed = vault.run(&["trust", "--remove", "--json"]).expect(0).json();
    assert_eq!(removed.as_array().map(Vec::len), Some(2), "{removed}");
    vault.write(".quipu/config.toml", "[llm]\nprovider = \"ollama\"\n");
    let ran = vault.run(&["trust"]).expect(2);
    assert!(ran.stderr.contains("the llm model is missing; set `llm.model`"), "{ran}");
}
