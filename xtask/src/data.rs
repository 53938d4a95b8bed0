//! Real vaults and other readers' answers, where they lie beside the repository. They are not part of it.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use std::{fs, io};

use anyhow::Context;

use crate::peers::system_package;
use crate::shell::{self, command};

/// The folder with every archive unpacked below its own name, or `None` where there are no archives. Unpacked again only
/// when an archive's size or time changed.
pub(crate) fn unpacked() -> anyhow::Result<Option<PathBuf>> {
    let archives = match archives(&shell::root().join("../shared/data")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        archives => archives.context("while listing ../shared/data")?,
    };
    if archives.is_empty() {
        return Ok(None);
    }
    let folder = shell::target().join("data");
    for archive in archives {
        unpack(&archive, &folder)?;
    }
    Ok(Some(folder.canonicalize()?))
}

fn archives(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut archives = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(".tar.zst") {
            archives.push(path);
        }
    }
    archives.sort();
    Ok(archives)
}

fn unpack(archive: &Path, folder: &Path) -> anyhow::Result<()> {
    let name = archive.file_name().and_then(|name| name.to_str()).context("archive name")?;
    let place = folder.join(name.trim_end_matches(".tar.zst"));
    let stamp_file = place.join(".stamp");
    let about = fs::metadata(archive)?;
    let modified = about.modified()?.duration_since(UNIX_EPOCH)?.as_nanos();
    let stamp = format!("{} {modified}", about.len());
    if fs::read_to_string(&stamp_file).is_ok_and(|known| known == stamp) {
        return Ok(());
    }
    system_package("zstd", &["zstd"])?;
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    fs::create_dir_all(&place)?;
    shell::run(command("tar", &["--zstd", "--extract", "--file"]).arg(archive).arg("--directory").arg(&place))?;
    Ok(fs::write(stamp_file, stamp)?)
}
