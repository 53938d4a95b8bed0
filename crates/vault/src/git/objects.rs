//! The names git gives to contents: of every file of a commit, of some files of many commits, of files on disk.

use std::collections::BTreeMap;

use super::program::{Git, GitError, judged};

/// A file as a commit has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Names its content.
    pub(crate) id: String,
    /// A symbolic link, whose content is where it leads.
    pub(crate) is_link: bool,
}

/// More files than this that a filter cannot take, and filters are left out.
const MAX_REFUSED: usize = 16;

impl Git {
    /// Every file of a commit. Other repositories inside this one are not looked into.
    pub(super) fn tree(&self, commit: &str) -> Result<BTreeMap<String, Entry>, GitError> {
        let listed = self.answer(&["ls-tree", "-r", "-z", "--full-tree", commit], String::new())?;
        let entry = |line: &[u8]| {
            let (head, path) = std::str::from_utf8(line).ok()?.split_once('\t')?;
            let mut words = head.split(' ');
            let (mode, kind, id) = (words.next()?, words.next()?, words.next()?);
            let entry = Entry { id: id.to_owned(), is_link: mode == "120000" };
            (kind == "blob").then(|| (path.to_owned(), entry))
        };
        Ok(listed.split(|byte| *byte == 0).filter_map(entry).collect())
    }

    /// The content of a path at a commit, for each pair; `None` where no file was there.
    pub(super) fn contents_at(&self, asked: &[(&str, &str)]) -> Result<Vec<Option<String>>, GitError> {
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let input: String = asked.iter().map(|(commit, path)| format!("{commit}:{path}\n")).collect();
        let arguments = ["cat-file", "--batch-check=%(objecttype) %(objectname)", "--buffer"];
        let said = self.answer(&arguments, input)?;
        let mut ids: Vec<Option<String>> = String::from_utf8_lossy(&said)
            .lines()
            .map(|line| line.strip_prefix("blob ").filter(|id| !id.contains(' ')).map(str::to_owned))
            .collect();
        ids.resize(asked.len(), None);
        Ok(ids)
    }

    /// Whether the repository's own configuration, and not the user's, names programs to filter files with.
    fn names_filters(&self) -> Result<bool, GitError> {
        let asked = ["config", "--show-scope", "--name-only", "--get-regexp", r"^filter\..*\.(clean|process)$"];
        // It says nothing, and fails, where there are none.
        let (said, _) = self.output(&asked, String::new())?;
        let scopes = String::from_utf8_lossy(&said);
        Ok(scopes.lines().any(|line| line.starts_with("local") || line.starts_with("worktree")))
    }

    /// What git would call the content of files as they are on disk, line endings and large files as it keeps them.
    /// `None` for a file that cannot be read. The paths must be free of line breaks and of links.
    pub(super) fn contents_of(&self, paths: &[&str]) -> Result<Vec<Option<String>>, GitError> {
        let mut ids: Vec<Option<String>> = Vec::with_capacity(paths.len());
        let mut refused = 0;
        // A filter is a program, and one that the repository itself names is not ours to run.
        let names_filters = !paths.is_empty() && self.names_filters()?;
        while ids.len() < paths.len() {
            let without = names_filters || refused > MAX_REFUSED;
            let with_filters: &[&str] = &["hash-object", "--stdin-paths"];
            let arguments = if without { &["hash-object", "--no-filters", "--stdin-paths"] } else { with_filters };
            // A name that starts with a quote would be read as quoted.
            let input: String = paths[ids.len()..].iter().map(|path| format!("./{path}\n")).collect();
            let (said, error) = self.output(arguments, input)?;
            ids.extend(String::from_utf8_lossy(&said).lines().map(|line| Some(line.to_owned())));
            ids.truncate(paths.len());
            if ids.len() == paths.len() {
                break;
            }
            // It stopped at the first one that it could not take: gone, or a filter that is not installed.
            let stopped = paths[ids.len()];
            let alone = ["hash-object", "--no-filters", "--stdin-paths"];
            let (said, _) = self.output(&alone, format!("./{stopped}\n"))?;
            let id = String::from_utf8_lossy(&said).trim().to_owned();
            if error.as_deref().is_some_and(|said| judged(arguments, said) == GitError::Untrusted) {
                return Err(GitError::Untrusted);
            }
            ids.push((!id.is_empty()).then_some(id));
            refused += 1;
        }
        Ok(ids)
    }
}
