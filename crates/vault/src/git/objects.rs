//! Object ids of file contents: of every file of a commit, of some files of many commits, of files on disk.

use std::collections::BTreeMap;

use super::program::{Git, GitError, classify};

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeEntry {
    /// The object id of its content.
    pub(crate) id: String,
    /// Whether it is a symbolic link, whose content is its target.
    pub(crate) is_link: bool,
}

/// After more files than this that a filter rejects, filters are disabled.
const MAX_REFUSED: usize = 16;

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

    /// Whether the repository's own configuration, and not the user's, may name filter programs. Git before 2.26 does not say
    /// whose configuration names one.
    fn may_name_filters(&self) -> Result<bool, GitError> {
        let asked = ["config", "--show-scope", "--name-only", "--get-regexp", r"^filter\..*\.(clean|process)$"];
        let (output, error) = self.output(&asked, String::new())?;
        // Without any filter, it fails without output.
        if error.is_some_and(|stderr| !stderr.trim().is_empty()) {
            return Ok(true);
        }
        let is_of_user = |line: &str| ["system\t", "global\t", "command\t"].iter().any(|scope| line.starts_with(scope));
        Ok(!String::from_utf8_lossy(&output).lines().all(is_of_user))
    }

    /// The object ids of files on disk, after filters for line endings and large files. `None` for a file that cannot be
    /// read. The paths must not contain line breaks or links.
    pub(super) fn contents_of(&self, paths: &[&str]) -> Result<Vec<Option<String>>, GitError> {
        let mut ids: Vec<Option<String>> = Vec::with_capacity(paths.len());
        let mut refused = 0;
        // A filter is a program: one that comes with the repository is not trusted.
        let may_name_filters = !paths.is_empty() && self.may_name_filters()?;
        while ids.len() < paths.len() {
            let without = may_name_filters || refused > MAX_REFUSED;
            let with_filters: &[&str] = &["hash-object", "--stdin-paths"];
            let arguments = if without { &["hash-object", "--no-filters", "--stdin-paths"] } else { with_filters };
            // Git would unquote a name that starts with a quote.
            let input: String = paths[ids.len()..].iter().map(|path| format!("./{path}\n")).collect();
            let (output, error) = self.output(arguments, input)?;
            ids.extend(String::from_utf8_lossy(&output).lines().map(|line| Some(line.to_owned())));
            ids.truncate(paths.len());
            if ids.len() == paths.len() {
                break;
            }
            // It stops at the first file it cannot hash: deleted, or its filter is not installed.
            let stopped = paths[ids.len()];
            let alone = ["hash-object", "--no-filters", "--stdin-paths"];
            let (output, _) = self.output(&alone, format!("./{stopped}\n"))?;
            let id = String::from_utf8_lossy(&output).trim().to_owned();
            if error.as_deref().is_some_and(|stderr| classify(arguments, stderr) == GitError::Untrusted) {
                return Err(GitError::Untrusted);
            }
            ids.push((!id.is_empty()).then_some(id));
            refused += 1;
        }
        Ok(ids)
    }
}
