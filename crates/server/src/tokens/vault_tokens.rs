//! The tokens that the server of a vault accepts.

use std::sync::Arc;

use anyhow::{bail, ensure};
use jiff::Timestamp;
use parking_lot::Mutex;

use super::token_file::{Token, TokenFile, hashed};
use super::{Denied, Grant, NeedsLookup, TokenSource};
use crate::stamp::PathStamp;

/// The tokens of a served vault: a created or revoked token takes effect with the next request.
pub(crate) struct VaultTokens {
    file: TokenFile,
    known: Mutex<LoadedTokens>,
}

#[derive(Default)]
struct LoadedTokens {
    stamps: [Option<PathStamp>; 2],
    secret: [u8; 32],
    tokens: Vec<KnownToken>,
}

struct KnownToken {
    hash: blake3::Hash,
    is_intact: bool,
    token: Arc<Token>,
}

impl TokenSource for VaultTokens {
    /// Fails also if the key of the tokens is lost.
    fn ensure_some(&self) -> anyhow::Result<()> {
        let tokens = self.file.list()?;
        ensure!(!tokens.is_empty(), "no token exists; create one with `quipu token new`");
        let Some(secret) = self.file.known_secret()? else {
            let key = self.file.secret.as_ref().map_or("the user's folder".into(), |key| key.display().to_string());
            bail!(
                "the tokens in {} are invalid, because the key they were created with is not at {key}; restore it, or revoke \
                 them with `quipu token revoke` and create new ones with `quipu token new`",
                self.file.file.display()
            );
        };
        ensure!(
            tokens.iter().any(|token| token.is_intact(&secret)),
            "the tokens in {} were changed, or created with another key; revoke them with `quipu token revoke` and create \
             new ones with `quipu token new`",
            self.file.file.display()
        );
        Ok(())
    }

    fn check_at_once(&self, presented: &str, now: Timestamp) -> Result<Result<Grant, Denied>, NeedsLookup> {
        Ok(self.check(presented, now))
    }

    fn check(&self, presented: &str, now: Timestamp) -> Result<Grant, Denied> {
        let token = self.find(presented, now)?;
        Ok(Grant { id: token.id.clone(), name: token.name.clone(), scope: token.scope, graphs: None })
    }
}

impl VaultTokens {
    pub(crate) fn new(file: TokenFile) -> Self {
        Self { file, known: Mutex::default() }
    }

    /// The stored token that matches.
    fn find(&self, presented: &str, now: Timestamp) -> Result<Arc<Token>, Denied> {
        let mut known = self.known.lock();
        let stamps = self.file.stamps();
        if known.stamps != stamps {
            *known = self.load(stamps);
        }
        let presented = hashed(presented, &known.secret);
        let mut found: Option<&KnownToken> = None;
        // All tokens are compared, in constant time, so that timing reveals nothing.
        for known in &known.tokens {
            // A changed copy beside the original entry does not invalidate the original.
            if known.hash == presented && found.is_none_or(|found| !found.is_intact) {
                found = Some(known);
            }
        }
        match found {
            None => Err(Denied::Unknown),
            Some(KnownToken { is_intact: false, .. }) => Err(Denied::Changed),
            Some(KnownToken { token, .. }) if token.is_expired(now) => Err(Denied::Expired),
            Some(KnownToken { token, .. }) => Ok(token.clone()),
        }
    }

    /// If the file cannot be read, no token is accepted.
    fn load(&self, stamps: [Option<PathStamp>; 2]) -> LoadedTokens {
        let load = || {
            let tokens = self.file.list()?;
            let secret = self.file.known_secret()?;
            ensure!(
                tokens.is_empty() || secret.is_some(),
                "the tokens of this vault were created by another user, or with a key that is lost"
            );
            let secret = secret.unwrap_or_default();
            let known = tokens.into_iter().filter_map(|token| {
                let is_intact = token.is_intact(&secret);
                if !is_intact {
                    tracing::warn!(
                        "the token {} is refused: its entry in {} was changed; create a new one with `quipu token new`",
                        token.name.escape_debug(),
                        self.file.file.display()
                    );
                }
                let hash = blake3::Hash::from_hex(&token.hash).ok()?;
                Some(KnownToken { hash, is_intact, token: Arc::new(token) })
            });
            Ok((secret, known.collect()))
        };
        let (secret, tokens) = load().unwrap_or_else(|error| {
            tracing::warn!("no token is accepted: {error:#}");
            ([0; 32], Vec::new())
        });
        LoadedTokens { stamps, secret, tokens }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::TokenScope;
    use super::super::token_file::PREFIX;
    use super::*;
    use crate::own_files;

    fn files(folder: &tempfile::TempDir, user: &str) -> TokenFile {
        TokenFile {
            file: folder.path().join("vault/.quipu/tokens.toml"),
            secret: Some(folder.path().join(user).join("token.key")),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn token_is_valid_until_expired_or_revoked_and_stored_as_a_hash() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = VaultTokens::new(files(&folder, "ada"));
        assert_eq!(tokens.find("quipu_x", at(0)), Err(Denied::Unknown));
        let (text, made) = files(&folder, "ada").add("laptop", TokenScope::Read, at(0), Some(at(100))).unwrap();
        assert!(text.starts_with("quipu_") && text.len() == PREFIX.len() + 64);
        let kept = own_files::read(&files(&folder, "ada").file).unwrap().unwrap();
        assert!(!kept.contains(&text[PREFIX.len()..]), "{kept}");
        assert_eq!(*tokens.find(&text, at(99)).unwrap(), made);
        assert_eq!(tokens.find(&text, at(100)), Err(Denied::Expired));
        assert_eq!(tokens.find(&text.to_uppercase(), at(0)), Err(Denied::Unknown));
        assert_eq!(tokens.find("", at(0)), Err(Denied::Unknown));
        assert_eq!(files(&folder, "ada").revoke("laptop").unwrap().id, made.id);
        assert_eq!(tokens.find(&text, at(0)), Err(Denied::Unknown));
        assert!(files(&folder, "ada").revoke("laptop").is_err());
    }

    #[test]
    fn tokens_that_came_with_a_vault_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let (text, _) = files(&folder, "mallory").add("mine", TokenScope::Admin, at(0), None).unwrap();
        assert!(VaultTokens::new(files(&folder, "mallory")).find(&text, at(0)).is_ok());
        assert_eq!(VaultTokens::new(files(&folder, "ada")).find(&text, at(0)), Err(Denied::Unknown));
        files(&folder, "ada").add("hers", TokenScope::Read, at(0), None).unwrap();
        assert_eq!(
            VaultTokens::new(files(&folder, "ada")).find(&text, at(0)),
            Err(Denied::Unknown),
            "nor with a secret"
        );
    }

    #[test]
    fn token_whose_line_was_changed_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let (read, _) = files(&folder, "ada").add("reader", TokenScope::Read, at(0), Some(at(100))).unwrap();
        let (other, _) = files(&folder, "ada").add("other", TokenScope::Read, at(0), None).unwrap();
        let tokens = VaultTokens::new(files(&folder, "ada"));
        let TokenFile { file, .. } = files(&folder, "ada");
        let made = own_files::read(&file).unwrap().unwrap();
        let expires = format!("expires = \"{}\"\n", at(100));
        for (from, to) in [
            ("scope = \"read\"", "scope = \"admin\"".to_owned()),
            (expires.as_str(), format!("expires = \"{}\"\n", at(9999))),
            (expires.as_str(), String::new()),
            ("name = \"reader\"", "name = \"admin\"".to_owned()),
        ] {
            assert!(made.contains(from), "{from} is not in {made}");
            own_files::replace(&file, &made.replacen(from, &to, 1)).unwrap();
            assert_eq!(tokens.find(&read, at(0)), Err(Denied::Changed), "{from}: {to}");
            assert!(tokens.find(&other, at(0)).is_ok(), "others are as they were");
        }
        // Beside the line as it was made, a changed one is invalid and does no harm.
        let entry = &made[made.find("[[token]]").unwrap()..made.rfind("[[token]]").unwrap()];
        let copied = entry.replace("\"read\"", "\"admin\"");
        for both in [format!("{entry}{copied}"), format!("{copied}{entry}")] {
            own_files::replace(&file, &both).unwrap();
            assert_eq!(tokens.find(&read, at(0)).unwrap().scope, TokenScope::Read);
        }
        // As tokens were kept before they were sealed.
        let unsealed: String =
            entry.lines().filter(|line| !line.starts_with("seal")).map(|line| format!("{line}\n")).collect();
        own_files::replace(&file, &unsealed).unwrap();
        let denied = tokens.find(&read, at(0)).unwrap_err();
        assert!(denied.to_string().contains("create a new one with `quipu token new`"), "{denied}");
        let error = format!("{:#}", tokens.ensure_some().unwrap_err());
        assert!(error.contains("`quipu token new`"), "{error}");
    }

    #[test]
    fn token_file_that_others_may_write_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let (text, _) = files(&folder, "ada").add("laptop", TokenScope::Read, at(0), None).unwrap();
        let file = files(&folder, "ada").file;
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(VaultTokens::new(files(&folder, "ada")).find(&text, at(0)), Err(Denied::Unknown));
    }

    #[test]
    fn changed_file_permissions_apply_to_the_next_request() {
        let folder = tempfile::tempdir().unwrap();
        let (text, _) = files(&folder, "ada").add("laptop", TokenScope::Read, at(0), None).unwrap();
        let TokenFile { file, secret } = files(&folder, "ada");
        let tokens = VaultTokens::new(files(&folder, "ada"));
        let lets_in = || tokens.find(&text, at(0)).is_ok();
        let allow = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        assert!(lets_in());
        allow(0o666);
        assert!(!lets_in(), "others could have put a token there");
        allow(0o600);
        assert!(lets_in(), "as the message advises");
        // Only root may give a file away.
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&file, Some(65534), None).unwrap();
            assert!(!lets_in(), "another may write it");
            std::os::unix::fs::chown(&file, Some(0), None).unwrap();
            assert!(lets_in());
        } else {
            quipu_testkit::skip("in part: only root can give a file to another account");
        }
        let key = secret.unwrap();
        let kept = own_files::read(&key).unwrap().unwrap();
        own_files::replace(&key, "damaged").unwrap();
        assert!(!lets_in());
        own_files::replace(&key, &kept).unwrap();
        assert!(lets_in(), "the key is back");
    }
}
