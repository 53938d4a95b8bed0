//! Object ids of file contents: of every file of a commit, and of some files of many commits. Attributes of files.

use std::collections::{BTreeMap, HashSet};

use super::program::{Git, GitError};

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeEntry {
    /// The object id of its content.
    pub(crate) id: String,
    /// Whether it is a symbolic link, whose content is its target.
    pub(crate) is_link: bool,
}

/// Attributes whose effect on a file is not computed here.
const CONVERTING: [&str; 3] = ["filter", "ident", "working-tree-encoding"];

impl Git {
    /// Every file of a commit, without submodules.
    pub(super) fn tree(&self, commit: &str) -> Result<BTreeMap<String, TreeEntry>, GitError> {
        let listed = self.answer(&["ls-tree", "-r", "-z", "--full-tree", commit], String::new())?;
        let entry = |line: &[u8]| {
            let (head, path) = std::str::from_utf8(line).ok()?.split_once('\t')?;
            let mut words = head.split(' ');
            let (mode, kind, id) = (words.next()?, words.next()?, words.next()?);
            let entry = TreeEntry { id: id.to_owned(), is_link: mode == "120000" };
            (kind == "blob").then(|| (path.to_owned(), entry))
        };
        Ok(listed.split(|byte| *byte == 0).filter_map(entry).collect())
    }

    /// The content of a path at a commit, for each pair; `None` if the path was not a file.
    pub(super) fn contents_at(&self, asked: &[(&str, &str)]) -> Result<Vec<Option<String>>, GitError> {
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let input: String = asked.iter().map(|(commit, path)| format!("{commit}:{path}\n")).collect();
        let arguments = ["cat-file", "--batch-check=%(objecttype) %(objectname)", "--buffer"];
        let output = self.answer(&arguments, input)?;
        let mut ids: Vec<Option<String>> = String::from_utf8_lossy(&output)
            .lines()
            .map(|line| line.strip_prefix("blob ").filter(|id| !id.contains(' ')).map(str::to_owned))
            .collect();
        ids.resize(asked.len(), None);
        Ok(ids)
    }

    /// The files of `paths` that git stores in another form, which only its filters can tell: `filter` other than Git LFS,
    /// `ident` and `working-tree-encoding`. Reads attributes; no filter runs.
    pub(super) fn converted<'a>(&self, paths: &[&'a str]) -> Result<HashSet<&'a str>, GitError> {
        if paths.is_empty() {
            return Ok(HashSet::new());
        }
        let input: String = paths.iter().flat_map(|path| [*path, "\0"]).collect();
        let output = self.answer(&[&["check-attr", "--stdin", "-z"][..], &CONVERTING].concat(), input)?;
        let words: Vec<&[u8]> = output.split(|byte| *byte == 0).collect();
        // For each path, in order: path, attribute and value of each attribute.
        let is_converted = |answers: &[&[u8]]| {
            answers.chunks(3).any(|answer| !matches!(answer.get(2), Some(&(b"unspecified" | b"unset" | b"lfs"))))
        };
        let answers = words.chunks(3 * CONVERTING.len());
        Ok(paths.iter().zip(answers).filter(|(_, answers)| is_converted(answers)).map(|(path, _)| *path).collect())
    }
}
