//! Measures listing, reading, replacing and watching on a generated vault:
//! `cargo run --release -p quipu-vault --example measure -- [notes] [folder to make it in]`.
#![expect(clippy::disallowed_methods, reason = "it makes the vault that it measures")]
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use quipu_core::model::VaultPath;
use quipu_core::ports::{FileChange, VaultFiles};
use quipu_vault::{FolderVault, VaultOptions, WatchOptions, watch};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let notes: usize = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let home = tempfile::tempdir_in(folder)?;
    for n in 0..notes {
        let folder = home.path().join(format!("area-{}/topic-{}", n / 2000, n / 100));
        if n % 100 == 0 {
            std::fs::create_dir_all(&folder)?;
        }
        std::fs::write(folder.join(format!("note-{n}.md")), format!("# Note {n}\n\nSee [[note-{}]].\n", n / 2))?;
    }
    std::fs::write(home.path().join(".gitignore"), "build/\n*.tmp.md\n/private\n")?;

    let vault = Arc::new(FolderVault::open(home.path(), VaultOptions::default())?);
    report("list, warm", 7, || assert_eq!(vault.list().expect("it can be listed").files.len(), notes));
    let files = vault.list()?.files;
    let one_hundredth: Vec<&VaultPath> = files.iter().map(|file| &file.path).step_by(100).collect();
    let each = u32::try_from(one_hundredth.len().max(1))?;
    let start = Instant::now();
    for path in one_hundredth {
        assert!(vault.read(path)?.is_some());
    }
    println!("read one note: {:?}", start.elapsed() / each);

    let path = VaultPath::parse("area-0/topic-0/note-0.md")?;
    let mut count = 0;
    report("replace one note", 50, || {
        let expected = vault.read(&path).expect("it can be read").expect("it is there").hash;
        count += 1;
        let bytes = format!("version {count}").into_bytes();
        vault.apply(&[FileChange::Replace { path: path.clone(), expected, bytes }]).expect("it can be replaced");
    });

    let start = Instant::now();
    let (sender, events) = mpsc::channel();
    let watcher = watch(&vault, WatchOptions::default(), move |event| drop(sender.send(event)))?;
    println!("place the watches: {:?}", start.elapsed());
    let file = home.path().join(path.as_str());
    report("a save is reported", 20, || {
        std::fs::write(&file, Instant::now().elapsed().as_nanos().to_string()).expect("it can be saved");
        events.recv_timeout(Duration::from_secs(10)).expect("it is reported");
    });
    drop(watcher);
    Ok(())
}

fn report(what: &str, times: usize, mut work: impl FnMut()) {
    let mut taken: Vec<Duration> = (0..times)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    taken.sort();
    println!("{what}: median {:?}, worst {:?}", taken[times / 2], taken[times - 1]);
}
