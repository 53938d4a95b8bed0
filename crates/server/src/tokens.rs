//! Bearer tokens for HTTP clients: created once, shown once, stored only as hashes.
//!
//! The hash is keyed with a secret from the user's own folder, so tokens that came with a copied or cloned vault give no
//! access. A keyed seal covers the fields of each token: changing the file, for example in a synced vault, gives no token
//! more scope or a later expiry.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use jiff::Timestamp;
use parking_lot::Mutex;
use quipu_tools::Access;
use serde::{Deserialize, Serialize};

use crate::own_files::{self, own_folder};
use crate::stamp::PathStamp;

/// The prefix of a token, so that people and secret scanners recognise one.
const PREFIX: &str = "quipu_";

/// The prefix of identities from an identity provider. No token's name may have it, so the two are never confused.
pub(crate) const OF_PROVIDER: &str = "subject ";

/// What a client may do. Each scope includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenScope {
    /// Use the read-only tools, and read resources.
    Read,
    /// Use every tool that keeps what it replaces.
    Write,
    /// Also read `/metrics`.
    Admin,
}

impl TokenScope {
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }

    pub(crate) fn allows(self, access: Access) -> bool {
        match access {
            Access::Read => true,
            Access::Write | Access::Destroy => self >= Self::Write,
            Access::Erase => self >= Self::Admin,
        }
    }

    /// The least scope that allows this access.
    pub(crate) fn needed_for(access: Access) -> Self {
        Self::ALL.into_iter().find(|scope| scope.allows(access)).unwrap_or(Self::Admin)
    }

    /// Why a client of a lower scope may not use a tool.
    pub(crate) fn refusal(self, tool: &str) -> String {
        match self {
            Self::Read | Self::Write => format!("{tool} writes; this token has only the scope `read`"),
            Self::Admin => format!("{tool} requires a token with the scope `admin`"),
        }
    }
}

/// A stored token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Identifies it without revealing it.
    pub id: String,
    pub name: String,
    pub scope: TokenScope,
    hash: String,
    created: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    /// A keyed hash of all fields above.
    #[serde(default)]
    seal: String,
}

impl Token {
    /// When it was created, as stored.
    pub fn created(&self) -> &str {
        &self.created
    }

    /// When it expires, if ever, as stored.
    pub fn expires(&self) -> Option<&str> {
        self.expires.as_deref()
    }

    /// The expected seal. Its key differs from that of the hashes, so no hash is valid as a seal.
    fn sealed(&self, secret: &[u8; 32]) -> blake3::Hash {
        let Self { id, name, scope, hash, created, expires, seal: _ } = self;
        let said = serde_json::json!([id, name, scope, hash, created, expires]).to_string();
        blake3::keyed_hash(&blake3::derive_key("quipu 2026-11 seal of a token", secret), said.as_bytes())
    }

    /// Whether it is unchanged since its creation.
    fn is_intact(&self, secret: &[u8; 32]) -> bool {
        blake3::Hash::from_hex(&self.seal).is_ok_and(|seal| seal == self.sealed(secret))
    }

    /// Whether it has expired. An unreadable time counts as expired.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.as_ref().is_some_and(|expires| !expires.parse::<Timestamp>().is_ok_and(|time| time > now))
    }
}

/// The file of tokens.
#[derive(Default, Serialize, Deserialize)]
struct TokenRecords {
    #[serde(default, rename = "token")]
    tokens: Vec<Token>,
}

/// The tokens of a vault.
pub struct TokenFile {
    file: PathBuf,
    /// `None` if the user has no folder; then no token can be created or accepted.
    secret: Option<PathBuf>,
}

impl TokenFile {
    pub fn of(vault: &Path) -> Self {
        let secret = own_files::user_folder().ok().map(|folder| folder.join("token.key"));
        Self { file: own_folder(vault).join("tokens.toml"), secret }
    }

    /// All tokens, oldest first.
    pub fn list(&self) -> anyhow::Result<Vec<Token>> {
        let Some(text) = own_files::read(&self.file)? else { return Ok(Vec::new()) };
        self.check_permissions()?;
        let kept: TokenRecords = toml::from_str(&text)
            .with_context(|| format!("{} cannot be read; remove it and make new tokens", self.file.display()))?;
        Ok(kept.tokens)
    }

    /// The tokens that a server accepts: unchanged, and sealed with the user's key.
    pub fn accepted(&self, tokens: &[Token]) -> anyhow::Result<Vec<bool>> {
        let secret = self.known_secret()?;
        Ok(tokens.iter().map(|token| secret.is_some_and(|secret| token.is_intact(&secret))).collect())
    }

    /// Creates a token. Its text is returned here and never again.
    pub fn add(
        &self,
        name: &str,
        scope: TokenScope,
        now: Timestamp,
        expires: Option<Timestamp>,
    ) -> anyhow::Result<(String, Token)> {
        ensure!(
            !name.starts_with(OF_PROVIDER),
            "names that begin with `{OF_PROVIDER}` are those of identity providers"
        );
        let _lock = self.lock()?;
        let mut tokens = self.list()?;
        ensure!(tokens.iter().all(|token| token.name != name), "there is a token called {name}: revoke it first");
        let text = format!("{PREFIX}{}", random()?);
        let secret = self.made_secret()?;
        let hash = hashed(&text, &secret).to_hex().to_string();
        let mut token = Token {
            id: hash[..8].to_owned(),
            name: name.to_owned(),
            scope,
            hash,
            created: now.to_string(),
            expires: expires.map(|time| time.to_string()),
            seal: String::new(),
        };
        token.seal = token.sealed(&secret).to_hex().to_string();
        tokens.push(token.clone());
        self.write(tokens)?;
        Ok((text, token))
    }

    /// Removes a token by id or name. A running server no longer accepts it.
    pub fn revoke(&self, which: &str) -> anyhow::Result<Token> {
        let _lock = self.lock()?;
        let mut tokens = self.list()?;
        let by_id = tokens.iter().position(|token| token.id == which);
        let place = by_id.or_else(|| tokens.iter().position(|token| token.name == which));
        let Some(place) = place else { bail!("there is no token {which}; `quipu token list` lists the tokens") };
        let revoked = tokens.remove(place);
        self.write(tokens)?;
        Ok(revoked)
    }

    fn lock(&self) -> anyhow::Result<std::fs::File> {
        let folder = self.file.parent().unwrap_or(Path::new("."));
        ensure!(!folder.is_symlink(), "{} is a link: tokens are kept in a folder of the vault", folder.display());
        own_files::lock(folder)
    }

    fn write(&self, tokens: Vec<Token>) -> anyhow::Result<()> {
        let text = toml::to_string(&TokenRecords { tokens }).context("while writing tokens")?;
        let head = "# Written by `quipu token`. Contains hashes of tokens, never a token.\n\n";
        own_files::replace(&self.file, &format!("{head}{text}"))
    }

    /// Checks that no other user can add a token to the file.
    fn check_permissions(&self) -> anyhow::Result<()> {
        let file = self.file.display();
        let metadata = self.file.symlink_metadata().with_context(|| format!("while looking at {file}"))?;
        ensure!(metadata.is_file(), "{file} is not a file");
        let (owner, we) = (metadata.uid(), rustix::process::geteuid().as_raw());
        ensure!(owner == we || owner == 0, "{file} belongs to another user: `chown` it if the tokens in it are yours");
        let mode = metadata.permissions().mode();
        ensure!(mode & 0o022 == 0, "other users can write {file}: `chmod 600` it if the tokens in it are yours");
        Ok(())
    }

    fn known_secret(&self) -> anyhow::Result<Option<[u8; 32]>> {
        let Some(file) = &self.secret else { return Ok(None) };
        let Some(text) = own_files::read(file)? else { return Ok(None) };
        let secret = blake3::Hash::from_hex(text.trim());
        let secret = secret.with_context(|| format!("{} is damaged; remove it", file.display()))?;
        Ok(Some(*secret.as_bytes()))
    }

    fn made_secret(&self) -> anyhow::Result<[u8; 32]> {
        if let Some(secret) = self.known_secret()? {
            return Ok(secret);
        }
        let folder = own_files::user_folder()?;
        let file = self.secret.clone().unwrap_or_else(|| folder.join("token.key"));
        let _lock = own_files::lock(file.parent().unwrap_or(&folder))?;
        if self.known_secret()?.is_none() {
            own_files::replace(&file, &format!("{}\n", random()?))?;
        }
        self.known_secret()?.context("the secret was written and cannot be found")
    }

    /// Changes whenever a file changes that decides which tokens are accepted.
    fn stamps(&self) -> [Option<PathStamp>; 2] {
        [PathStamp::of(&self.file), self.secret.as_deref().and_then(PathStamp::of)]
    }
}

/// 256 random bits, as text.
fn random() -> anyhow::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("while asking the system for random bytes")?;
    Ok(blake3::Hash::from_bytes(bytes).to_hex().to_string())
}

fn hashed(token: &str, secret: &[u8; 32]) -> blake3::Hash {
    blake3::keyed_hash(secret, token.as_bytes())
}

/// Why a token is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error("unknown token; create one with `quipu token new`")]
    Unknown,
    #[error("the token has expired")]
    Expired,
    #[error("the entry of this token was changed after it was created; create a new one with `quipu token new`")]
    Changed,
    /// It could not be checked, with the cause.
    #[error("cannot check the token: {0}; retry in a moment")]
    Unchecked(String),
}

/// A graph of a database. Its name may later be another graph's, its id never.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphRef {
    pub id: i64,
    pub name: String,
}

/// What a token allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Identifies the token without revealing it.
    pub id: String,
    pub name: String,
    pub scope: TokenScope,
    /// The graphs that the token is for; `None` for whatever the server has.
    pub graphs: Option<Vec<GraphRef>>,
}

/// Decides which tokens a server accepts.
pub trait TokenSource: Send + Sync {
    /// Fails if no client could connect.
    fn ensure_some(&self) -> anyhow::Result<()>;

    /// What a token allows now.
    fn check(&self, presented: &str, now: Timestamp) -> Result<Grant, Denied>;

    /// Whether a check may wait for a network.
    fn may_wait(&self) -> bool;
}

/// The tokens of a served vault: a created or revoked token takes effect with the next request.
pub(crate) struct Tokens {
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

impl TokenSource for Tokens {
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

    fn may_wait(&self) -> bool {
        false
    }

    fn check(&self, presented: &str, now: Timestamp) -> Result<Grant, Denied> {
        let token = self.find(presented, now)?;
        Ok(Grant { id: token.id.clone(), name: token.name.clone(), scope: token.scope, graphs: None })
    }
}

impl Tokens {
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
    use super::*;

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
        let tokens = Tokens::new(files(&folder, "ada"));
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
        assert!(Tokens::new(files(&folder, "mallory")).find(&text, at(0)).is_ok());
        assert_eq!(Tokens::new(files(&folder, "ada")).find(&text, at(0)), Err(Denied::Unknown));
        files(&folder, "ada").add("hers", TokenScope::Read, at(0), None).unwrap();
        assert_eq!(Tokens::new(files(&folder, "ada")).find(&text, at(0)), Err(Denied::Unknown), "nor with a secret");
    }

    #[test]
    fn token_whose_line_was_changed_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let (read, _) = files(&folder, "ada").add("reader", TokenScope::Read, at(0), Some(at(100))).unwrap();
        let (other, _) = files(&folder, "ada").add("other", TokenScope::Read, at(0), None).unwrap();
        let tokens = Tokens::new(files(&folder, "ada"));
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
        assert_eq!(Tokens::new(files(&folder, "ada")).find(&text, at(0)), Err(Denied::Unknown));
    }

    #[test]
    fn changed_file_permissions_apply_to_the_next_request() {
        let folder = tempfile::tempdir().unwrap();
        let (text, _) = files(&folder, "ada").add("laptop", TokenScope::Read, at(0), None).unwrap();
        let TokenFile { file, secret } = files(&folder, "ada");
        let tokens = Tokens::new(files(&folder, "ada"));
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
        }
        let key = secret.unwrap();
        let kept = own_files::read(&key).unwrap().unwrap();
        own_files::replace(&key, "damaged").unwrap();
        assert!(!lets_in());
        own_files::replace(&key, &kept).unwrap();
        assert!(lets_in(), "the key is back");
    }

    #[test]
    fn read_scope_does_not_allow_writes() {
        let may = |scope: TokenScope| {
            [Access::Read, Access::Write, Access::Destroy, Access::Erase].map(|access| scope.allows(access))
        };
        assert_eq!(may(TokenScope::Read), [true, false, false, false]);
        assert_eq!(may(TokenScope::Write), [true, true, true, false]);
        assert_eq!(may(TokenScope::Admin), [true, true, true, true]);
    }
}
