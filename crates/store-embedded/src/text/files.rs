//! Integrity checks of the files of the text index.
//!
//! They are read as plain files first: reading a mapped file that was truncated kills the process, and tantivy's reader
//! subtracts from the length before it checks it.

#![expect(clippy::disallowed_methods, reason = "reads the text index's own files")]

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::Index;
use tantivy::directory::footer::Footer;
use tantivy::directory::{FileSlice, OwnedBytes};
use tantivy::index::SegmentComponent;

use super::damage::{TextError, guarded, is_absence};

/// The files of every segment. Deletions have a file of their own, if there are any.
const COMPONENTS: [SegmentComponent; 6] = [
    SegmentComponent::Terms,
    SegmentComponent::Postings,
    SegmentComponent::Positions,
    SegmentComponent::FastFields,
    SegmentComponent::FieldNorms,
    SegmentComponent::Store,
];
/// More than any footer, which is a line of JSON and two numbers.
const TAIL_BYTES: u64 = 1024;
/// The two numbers alone.
const MIN_TAIL_BYTES: usize = 8;

/// Problems of the index's files, as ends of sentences. `folder` is `None` in memory.
///
/// The footer of each file shows whether it is missing, truncated or foreign. Checksums are verified if all files together have no
/// more than `read_up_to` bytes.
pub(super) fn findings(index: &Index, folder: Option<&Path>, read_up_to: u64) -> Result<Vec<String>, TextError> {
    let files = match guarded(|| segment_files(index)) {
        // Another program deleted the folder or its list of segments.
        Err(TextError::Failed(error)) if is_absence(&error) => {
            return Ok(vec![format!("its files are missing ({error})")]);
        }
        files => files?,
    };
    let mut findings = Vec::new();
    let mut whole = Vec::new();
    let mut bytes = 0;
    for file in files {
        match folder.map_or(Ok(0), |folder| check_footer(&folder.join(&file))) {
            Ok(length) => {
                bytes += length;
                whole.push(file);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                findings.push(format!("{} is missing", file.display()));
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(TextError::Failed(error.into()));
            }
            Err(error) => findings.push(format!("{} is damaged: {error}", file.display())),
        }
    }
    if bytes <= read_up_to {
        for file in whole {
            if !guarded(|| Ok(index.directory().validate_checksum(&file)?))? {
                findings.push(format!("{} is damaged: its checksum is wrong", file.display()));
            }
        }
    }
    Ok(findings)
}

fn segment_files(index: &Index) -> tantivy::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for segment in &index.load_metas()?.segments {
        files.extend(COMPONENTS.map(|component| segment.relative_path(component)));
        if segment.has_deletes() {
            files.push(segment.relative_path(SegmentComponent::Delete));
        }
    }
    files.sort();
    Ok(files)
}

/// The file's length, if it ends with a valid footer.
fn check_footer(path: &Path) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    if bytes.len() < MIN_TAIL_BYTES {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it is too short"));
    }
    let (footer, _) = Footer::extract_footer(FileSlice::new(Arc::new(OwnedBytes::new(bytes))))?;
    footer.is_compatible().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{error:?}")))?;
    Ok(length)
}
