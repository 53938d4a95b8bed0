//! The check of the files of the text index.

use std::io;
use std::path::PathBuf;

use tantivy::Index;
use tantivy::index::SegmentComponent;

use super::damage::{TextError, guarded, is_absence};
use super::directory::IndexDirectory;

/// The files of every segment. Deletions have a file of their own, if there are any.
const COMPONENTS: [SegmentComponent; 6] = [
    SegmentComponent::Terms,
    SegmentComponent::Postings,
    SegmentComponent::Positions,
    SegmentComponent::FastFields,
    SegmentComponent::FieldNorms,
    SegmentComponent::Store,
];

/// Problems of the index's files as they are on disk, as ends of sentences.
pub(super) fn findings(index: &Index, directory: &IndexDirectory) -> Result<Vec<String>, TextError> {
    let files = match guarded(|| segment_files(index)) {
        // Another program deleted the folder or its list of segments.
        Err(TextError::Failed(error)) if is_absence(&error) => {
            return Ok(vec![format!("its files are missing ({error})")]);
        }
        files => files?,
    };
    let mut findings = Vec::new();
    for file in files {
        match guarded(|| Ok(directory.load(&file)))? {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                findings.push(format!("{} is missing", file.display()));
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(TextError::Failed(error.into()));
            }
            Err(error) => findings.push(format!("{} is damaged: {error}", file.display())),
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
