//! The rules of the `VaultFiles` port as tests, over the vault in memory that other tests use and over real folders: so
//! that what passes over the one holds for the other.
//!
//! A vault runs them all by `vault_conformance!(vault)` in a test module, where the expression makes a new, empty
//! [`TestedVault`].

use quipu_core::RequestKey;
use quipu_core::model::{ContentHash, NoteId, VaultPath};
use quipu_core::ports::{
    FileChange, NamePeriod, NoteAction, NoteHistory, TrashReason, TrashedFile, VaultFiles, WriteError, WriteFilter,
    WriteNumber, WriteOrigin,
};

use crate::generate::Random;
use crate::{FixedClock, MemVault};

/// A vault and the hand of its user.
pub trait TestedVault {
    /// The vault under test.
    type Vault: VaultFiles;

    /// The vault, open.
    fn vault(&self) -> &Self::Vault;

    /// Writes a file as another program would, whatever is there.
    fn save(&self, path: &str, text: &str);

    /// Whether a folder stays when its last file goes.
    fn keeps_empty_folders(&self) -> bool {
        true
    }
}

/// One `#[test]` for each rule, over the vault that the expression creates.
#[macro_export]
macro_rules! vault_conformance {
    ($vault:expr) => {
        $crate::vault_conformance!($vault,
            only_notes_are_listed_in_byte_order,
            note_is_read_with_the_stat_of_its_listing,
            exact_name_wins_over_other_case,
            files_that_differ_only_in_case_can_be_written_together,
            every_change_keeps_what_it_replaces,
            several_changes_are_atomic,
            new_path_must_be_free_and_valid,
            applied_request_is_known,
            restored_version_replaces_the_current_one,
            random_vault_changes_match_the_model,
            every_write_is_logged_once,
            forgotten_note_leaves_no_version_and_no_other_note_loses_one
        );
    };
    ($vault:expr, $($rule:ident),+) => {
        $(#[test]
        fn $rule() {
            $crate::vault_conformance::$rule(&$vault);
        })+
    };
}

fn path(text: &str) -> VaultPath {
    VaultPath::parse(text).expect("a test's path is a vault path")
}

fn create(at: &str, text: &str) -> FileChange {
    FileChange::Create { path: path(at), bytes: text.into() }
}

fn replace(at: &str, expected: &str, text: &str) -> FileChange {
    FileChange::Replace { path: path(at), expected: ContentHash::of(expected.as_bytes()), bytes: text.into() }
}

fn move_to(from: &str, to: &str, expected: &str, text: &str) -> FileChange {
    let expected = ContentHash::of(expected.as_bytes());
    FileChange::Move { from: path(from), to: path(to), expected, bytes: text.into() }
}

fn delete(at: &str, expected: &str) -> FileChange {
    FileChange::Delete { path: path(at), expected: ContentHash::of(expected.as_bytes()) }
}

/// Every note and its text.
fn notes(vault: &impl VaultFiles) -> Vec<(String, String)> {
    let files = vault.list().expect("the vault can be listed").files;
    let note = |path: &VaultPath| (path.to_string(), text(vault, path.as_str()).expect("it was listed"));
    files.iter().map(|file| note(&file.path)).collect()
}

fn text(vault: &impl VaultFiles, at: &str) -> Option<String> {
    let content = vault.read(&path(at)).expect("the vault can be read")?;
    Some(String::from_utf8(content.bytes).expect("tests write text"))
}

fn kept(vault: &impl VaultFiles) -> Vec<TrashedFile> {
    vault.trashed().expect("the trash can be listed")
}

fn kept_as(vault: &impl VaultFiles) -> Vec<(String, TrashReason, u64)> {
    kept(vault).into_iter().map(|kept| (kept.path.to_string(), kept.reason, kept.size)).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

/// Hidden files, other kinds and the folders of tools are no notes; capitals come first.
pub fn only_notes_are_listed_in_byte_order(subject: &impl TestedVault) {
    for at in ["b.md", "Z/x.markdown", "a b.md", "a/x.md", "a-b.md", ".git/c.md", "pic.png", "node_modules/d.md"] {
        subject.save(at, at);
    }
    let vault = subject.vault();
    let listed: Vec<String> = notes(vault).into_iter().map(|(path, _)| path).collect();
    assert_eq!(listed, ["Z/x.markdown", "a b.md", "a-b.md", "a/x.md", "b.md"]);
    let below = |at: &str| vault.list_below(&path(at)).expect("a part can be listed").files.len();
    assert_eq!([below("a"), below("a/x.md"), below("b"), below("pic.png"), below(".git")], [1, 1, 0, 0, 0]);
    assert_eq!(text(vault, "pic.png"), None);
}

/// The hash is of the bytes, and time and size are those a walk tells.
pub fn note_is_read_with_the_stat_of_its_listing(subject: &impl TestedVault) {
    subject.save("n/a.md", "\u{feff}text\r\n");
    let vault = subject.vault();
    let listed = vault.list().expect("the vault can be listed").files;
    let read = vault.read(&path("n/a.md")).expect("it can be read").expect("it is there");
    assert_eq!((listed[0].stat, ContentHash::of(&read.bytes)), (read.stat, read.hash));
    assert_eq!(read.stat.size, read.bytes.len() as u64);
    assert!(vault.read(&path("n/b.md")).expect("absence is no error").is_none());
    assert!(vault.read(&path("n/A.md")).expect("absence is no error").is_none(), "names are taken just so");
}

/// Files and folders, notes or not.
pub fn exact_name_wins_over_other_case(subject: &impl TestedVault) {
    for at in ["Notes/A.md", "Pic.png", "x/One.md", "x/one.md"] {
        subject.save(at, at);
    }
    let find = |at: &str| {
        let found = subject.vault().find_any_case(&path(at)).expect("the vault can be looked at");
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(find("notes/a.md"), ["Notes/A.md"]);
    assert_eq!(find("NOTES"), ["Notes"]);
    assert_eq!(find("pic.PNG"), ["Pic.png"]);
    assert_eq!(find("x/one.md"), ["x/one.md", "x/One.md"]);
    assert_eq!(find("x/ONE.md"), ["x/One.md", "x/one.md"]);
    assert!(find("x/two.md").is_empty());
}

/// Folders are made as needed, and each change tells the stat of its file.
pub fn every_change_keeps_what_it_replaces(subject: &impl TestedVault) {
    for (at, text) in [("a.md", "old a"), ("b.md", "old b"), ("c.md", "old c")] {
        subject.save(at, text);
    }
    let vault = subject.vault();
    let changes = [
        create("new/deep/n.md", "new"),
        replace("a.md", "old a", "newer a"),
        move_to("b.md", "moved/B.md", "old b", "b"),
        delete("c.md", "old c"),
    ];
    let stats = vault.apply(&changes).expect("the changes are allowed");
    assert_eq!(notes(vault), pairs(&[("a.md", "newer a"), ("moved/B.md", "b"), ("new/deep/n.md", "new")]));
    let stat = |at: &str| vault.read(&path(at)).expect("it can be read").map(|content| content.stat);
    assert_eq!(stats, [stat("new/deep/n.md"), stat("a.md"), stat("moved/B.md"), None]);
    let mut displaced = kept_as(vault);
    displaced.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [("a.md", TrashReason::Replaced), ("b.md", TrashReason::Moved), ("c.md", TrashReason::Deleted)];
    assert_eq!(displaced, expected.map(|(path, reason)| (path.to_owned(), reason, 5)));
}

/// The last one is refused, and the first did not happen.
pub fn several_changes_are_atomic(subject: &impl TestedVault) {
    subject.save("a.md", "A");
    subject.save("b.md", "B");
    let vault = subject.vault();
    let stale = vault.apply(&[create("n.md", "N"), replace("a.md", "A", "new"), replace("b.md", "stale", "new")]);
    assert!(matches!(&stale, Err(WriteError::Changed { path }) if path.as_str() == "b.md"), "{stale:?}");
    let gone = vault.apply(&[delete("a.md", "A"), delete("c.md", "C")]);
    assert!(matches!(&gone, Err(WriteError::Missing { path }) if path.as_str() == "c.md"), "{gone:?}");
    let twice = vault.apply(&[replace("a.md", "A", "new"), delete("a.md", "new")]);
    assert!(matches!(&twice, Err(WriteError::Refused { path, .. }) if path.as_str() == "a.md"), "{twice:?}");
    let alike = vault.apply(&[create("n.md", "N"), create("N.md", "N")]);
    assert!(matches!(&alike, Err(WriteError::Refused { path, .. }) if path.as_str() == "N.md"), "{alike:?}");
    assert_eq!(notes(vault), pairs(&[("a.md", "A"), ("b.md", "B")]));
    assert_eq!(kept(vault), []);
}

/// They are two files, also where names are compared without their case or Unicode form.
pub fn files_that_differ_only_in_case_can_be_written_together(subject: &impl TestedVault) {
    let names = ["Index.md", "index.md", "caf\u{e9}.md", "cafe\u{301}.md"];
    names.iter().for_each(|name| subject.save(name, "old"));
    let vault = subject.vault();
    vault.apply(&names.map(|name| replace(name, "old", "new"))).expect("each is a file of its own");
    assert!(notes(vault).iter().all(|(_, text)| text == "new"), "{:?}", notes(vault));
}

/// In every case of letters; a change of case alone is allowed to its own file.
pub fn new_path_must_be_free_and_valid(subject: &impl TestedVault) {
    subject.save("Notes/A.md", "A");
    subject.save("other.md", "O");
    let vault = subject.vault();
    let taken = |change: FileChange| match vault.apply(&[change]) {
        Err(WriteError::Exists { existing }) => existing.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(taken(create("notes/a.md", "")), "Notes/A.md");
    assert_eq!(taken(move_to("Notes/A.md", "OTHER.md", "A", "A")), "other.md");
    for at in [".hidden/a.md", "pic.png", "node_modules/a.md", "other.md/b.md"] {
        let refused = vault.apply(&[create(at, "")]);
        assert!(matches!(refused, Err(WriteError::Refused { .. })), "{at}: {refused:?}");
    }
    vault.apply(&[move_to("Notes/A.md", "Notes/a.md", "A", "A")]).expect("only the case changes");
    assert_eq!(notes(vault), pairs(&[("Notes/a.md", "A"), ("other.md", "O")]));
}

/// With the path of its first change, which for a delete is the old one; a refused request is not known.
pub fn applied_request_is_known(subject: &impl TestedVault) {
    subject.save("a.md", "old");
    let vault = subject.vault();
    let applied = |key| {
        let found = vault.applied_request(RequestKey(key)).expect("the vault can be asked");
        found.map(|path| path.to_string())
    };
    let apply = |key, changes: &[FileChange]| vault.apply_for(changes, &WriteOrigin::retried(RequestKey(key)));
    assert_eq!(applied(1), None);
    apply(1, &[create("new/n.md", "n")]).expect("the place is free");
    apply(2, &[move_to("a.md", "b.md", "old", "new"), replace("new/n.md", "n", "nn")]).expect("all is as expected");
    apply(3, &[delete("b.md", "new")]).expect("it is as expected");
    apply(4, &[replace("new/n.md", "nn", "nn")]).expect("nothing is to be done");
    assert!(apply(5, &[delete("b.md", "new")]).is_err());
    assert!(apply(6, &[replace("new/n.md", "nn", "n3"), delete("b.md", "new")]).is_err());
    let known = [1, 2, 3, 4, 5, 6].map(applied);
    let expected = [Some("new/n.md"), Some("b.md"), Some("b.md"), Some("new/n.md"), None, None];
    assert_eq!(known, expected.map(|path| path.map(str::to_owned)));
}

/// Newest first; what is equal already is left alone; a note in other capitals gives way.
pub fn restored_version_replaces_the_current_one(subject: &impl TestedVault) {
    subject.save("a.md", "1");
    let vault = subject.vault();
    vault.apply(&[replace("a.md", "1", "22")]).expect("allowed");
    vault.apply(&[delete("a.md", "22")]).expect("allowed");
    let versions = kept(vault);
    assert_eq!(versions.iter().map(|kept| kept.size).collect::<Vec<_>>(), [2, 1]);
    assert!(versions[0].version > versions[1].version);

    vault.restore(&versions[1]).expect("its place is free");
    assert_eq!(text(vault, "a.md").as_deref(), Some("1"));
    let stat = vault.restore(&versions[1]).expect("it is there already");
    assert_eq!(Some(stat), vault.read(&path("a.md")).expect("it can be read").map(|content| content.stat));
    assert_eq!(kept(vault).len(), 2, "nothing was displaced");
    vault.restore(&versions[0]).expect("the other gives way");
    assert_eq!((text(vault, "a.md").as_deref(), kept(vault).len()), (Some("22"), 3));

    vault.apply(&[move_to("a.md", "A.md", "22", "333")]).expect("only the case changes");
    vault.restore(&versions[1]).expect("the other spelling gives way");
    assert_eq!(notes(vault), pairs(&[("a.md", "1")]));
    let unknown =
        TrashedFile { version: "20200101T000000.000000000Z-000-deleted/a.md".to_owned(), ..versions[0].clone() };
    assert!(matches!(vault.restore(&unknown), Err(WriteError::Missing { .. })));
}

/// Some hundred changes, allowed or not, on names that collide; the vault in memory is the model.
pub fn random_vault_changes_match_the_model(subject: &impl TestedVault) {
    let mut paths = vec!["a.md", "A.md", "n/a.md", "N/b.md", "n/A.md", "a.md/x.md", ".h/x.md", "x.txt"];
    // The model keeps them.
    paths.retain(|path| subject.keeps_empty_folders() || *path != "a.md/x.md");
    let clock = std::sync::Arc::new(FixedClock::default());
    let (vault, model) = (subject.vault(), MemVault::new(clock.clone()));
    let mut random = Random(7);
    for step in 0..300 {
        clock.advance(1_000_000);
        let at = paths[random.below(paths.len())];
        let now = text(&model, at).unwrap_or_default();
        let (bytes, stale) = (format!("text {step}"), random.below(6) == 0);
        let expected = if stale { "stale" } else { now.as_str() };
        let versions = (kept(vault), kept(&model));
        if random.below(6) == 0 && !versions.0.is_empty() {
            let which = random.below(versions.0.len());
            let (real, modelled) = (vault.restore(&versions.0[which]), model.restore(&versions.1[which]));
            assert_eq!(kind(&real), kind(&modelled), "step {step}: restoring {:?}", versions.0[which]);
        } else {
            let change = match random.below(4) {
                0 => create(at, &bytes),
                1 => replace(at, expected, &bytes),
                2 => move_to(at, paths[random.below(paths.len())], expected, &bytes),
                _ => delete(at, expected),
            };
            let changes = [change];
            let (real, modelled) = (vault.apply(&changes), model.apply(&changes));
            assert_eq!(kind(&real), kind(&modelled), "step {step}: {changes:?}");
        }
        assert_eq!(notes(vault), notes(&model), "step {step}");
        assert_eq!(kept_as(vault), kept_as(&model), "step {step}");
    }
    assert!(kept(vault).len() > 20, "this tested nothing");
}

/// With its author, its files, both versions of each, and where the old one is kept. A refused write has no entry.
pub fn every_write_is_logged_once(subject: &impl TestedVault) {
    for (at, text) in [("a.md", "old a"), ("b.md", "old b"), ("c.md", "old c")] {
        subject.save(at, text);
    }
    let vault = subject.vault();
    let changes = [
        create("n.md", "né"),
        replace("a.md", "old a", "newer a"),
        move_to("b.md", "moved/B.md", "old b", "b"),
        delete("c.md", "old c"),
    ];
    let origin = WriteOrigin { by: "ada", action: NoteAction::Move, ..WriteOrigin::UNKNOWN };
    vault.apply_for(&changes, &origin).expect("the changes are allowed");
    assert!(vault.apply(&[delete("a.md", "stale")]).is_err());
    vault.apply(&[replace("a.md", "newer a", "newer a")]).expect("nothing is to be done");
    vault.apply(&[replace("a.md", "newer a", "third")]).expect("allowed");
    let writes = |filter: WriteFilter| vault.writes(&filter).expect("the history can be read");
    let all = writes(WriteFilter::default());
    assert_eq!(all.iter().map(|write| write.number.0).collect::<Vec<_>>(), [2, 1]);
    assert!(all[0].at_ns > all[1].at_ns);
    assert_eq!((all[1].by.as_str(), all[0].by.as_str()), ("ada", ""));
    let files: Vec<(String, &str)> =
        all[1].files.iter().map(|file| (file.path.to_string(), file.action.name())).collect();
    let expected = [("n.md", "create"), ("a.md", "links"), ("moved/B.md", "move"), ("c.md", "delete")];
    assert_eq!(files, expected.map(|(path, action)| (path.to_owned(), action)));
    assert_eq!(all[1].files[2].from, Some(path("b.md")));
    assert_eq!(all[1].files[0].after.map(|version| version.chars), Some(2));
    for file in all.iter().flat_map(|write| &write.files) {
        let kept = file.kept.as_ref().map(|kept| vault.kept_bytes(kept).expect("it can be read").expect("it is kept"));
        assert_eq!(kept.map(|bytes| ContentHash::of(&bytes)), file.before.map(|before| before.hash), "{file:?}");
        assert_eq!(file.after.is_none(), file.action == NoteAction::Delete);
    }
    let of = |id: &str| writes(WriteFilter { id: Some(NoteId::new(id)), ..WriteFilter::default() }).len();
    assert_eq!([of("a.md"), of("b.md"), of("MOVED/b.md"), of("x.md")], [2, 1, 1, 0]);
    let with = |id: Option<&str>, action| {
        let filter = WriteFilter { id: id.map(NoteId::new), action: Some(action), ..WriteFilter::default() };
        writes(filter).iter().map(|write| write.number.0).collect::<Vec<_>>()
    };
    assert_eq!([with(None, NoteAction::Links), with(None, NoteAction::Edit)], [[1], [2]]);
    assert_eq!([with(Some("a.md"), NoteAction::Links), with(Some("b.md"), NoteAction::Links)], [vec![1], vec![]]);
    assert_eq!(writes(WriteFilter { after: WriteNumber(1), ..WriteFilter::default() }).len(), 1);
    assert_eq!(writes(WriteFilter { before: WriteNumber(2), limit: 1, ..WriteFilter::default() }).len(), 1);
    assert_eq!(writes(WriteFilter { since_ns: all[0].at_ns, ..WriteFilter::default() }).len(), 1);
    assert_eq!(vault.kept_bytes("../../a.md").expect("it is no version"), None);
}

/// A note that had two names; another note has its first name now, and one had its second name before.
pub fn forgotten_note_leaves_no_version_and_no_other_note_loses_one(subject: &impl TestedVault) {
    subject.save("a.md", "secret 1");
    subject.save("b.md", "other 1");
    let vault = subject.vault();
    let apply = |change: FileChange| drop(vault.apply(&[change]).expect("allowed"));
    apply(replace("b.md", "other 1", "other 2"));
    apply(move_to("b.md", "c.md", "other 2", "other 2"));
    apply(replace("a.md", "secret 1", "secret 2"));
    apply(move_to("a.md", "b.md", "secret 2", "secret 3"));
    apply(create("a.md", "third 1"));
    apply(replace("a.md", "third 1", "third 2"));
    apply(replace("b.md", "secret 3", "trace"));
    let all = vault.writes(&WriteFilter::default()).expect("the history can be read");
    let [_, _, _, moved_in, _, moved_away, _] = all.as_slice() else { panic!("{all:?}") };
    let names = [
        NamePeriod { path: path("b.md"), since_ns: moved_in.at_ns, until_ns: i64::MAX },
        NamePeriod { path: path("a.md"), since_ns: i64::MIN, until_ns: moved_in.at_ns },
    ];
    assert!(moved_away.at_ns < moved_in.at_ns);
    assert_eq!(vault.forget(&names, WriteNumber(0)).expect("allowed"), 3);
    let kept: Vec<Vec<u8>> = vault
        .writes(&WriteFilter::default())
        .expect("the history can be read")
        .iter()
        .flat_map(|write| write.files.iter().filter_map(|file| file.kept.clone()))
        .map(|kept| vault.kept_bytes(&kept).expect("it can be read").expect("it is kept"))
        .collect();
    assert_eq!(kept, [b"third 1".to_vec(), b"other 2".to_vec(), b"other 1".to_vec()]);
    assert_eq!(vault.trashed().expect("the trash can be listed").len(), 3);
    assert_eq!(vault.forget(&names, WriteNumber(0)).expect("allowed"), 0);
    apply(create("d.md", "secret 1"));
    apply(replace("d.md", "secret 1", "trace"));
    let newest = || vault.writes(&WriteFilter { limit: 1, ..WriteFilter::default() }).expect("readable").remove(0);
    let replaced = newest();
    let name = NamePeriod { path: path("d.md"), since_ns: i64::MIN, until_ns: i64::MAX };
    assert_eq!(vault.forget(&[name], replaced.number).expect("allowed"), 1);
    let [left] = &newest().files[..] else { panic!("{:?}", newest()) };
    let after = replaced.files[0].after;
    assert!(after.is_some() && (&left.before, &left.kept, &left.after) == (&None, &None, &after), "{left:?}");
    vault.forget_write(replaced.number).expect("allowed");
    // A write without entries is not listed, but its number is not used again.
    assert_eq!(newest().number.0, 6);
    apply(delete("b.md", "trace"));
    assert_eq!(vault.writes(&WriteFilter { limit: 1, ..WriteFilter::default() }).expect("readable")[0].number.0, 10);
}

/// What came of a write, without words and times.
fn kind<T>(outcome: &Result<T, WriteError>) -> String {
    match outcome {
        Ok(_) => "done".to_owned(),
        Err(WriteError::Changed { path }) => format!("changed {path}"),
        Err(WriteError::Exists { existing }) => format!("exists {existing}"),
        Err(WriteError::Missing { path }) => format!("missing {path}"),
        Err(WriteError::Refused { path, .. }) => format!("refused {path}"),
        Err(WriteError::Full { path, limit }) => format!("full {path}: {limit}"),
        Err(WriteError::Busy { path, holder }) => format!("busy {path}: {holder}"),
        Err(WriteError::Write { path, source }) => format!("failed {path}: {source}"),
        Err(WriteError::Database { path, reason }) => format!("failed {path}: {reason}"),
    }
}
