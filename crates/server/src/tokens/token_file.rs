//! The file of a vault's tokens: created once, shown once, stored only as hashes.
//!
//! The hash is keyed with a secret from the user's own folder, so tokens that came with a copied or cloned vault give no
//! access. A keyed seal covers the fields of each token: changing the file, for example in a synced vault, gives no token
//! more scope or a later expiry.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{OF_PROVIDER, TokenScope};
use crate::own_files::{self, own_folder};
use crate::stamp::PathStamp;

/// The prefix of a token, so that people and secret scanners recognise one.
pub(super) const PREFIX: &str = "quipu_";

/// A stored token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Identifies it without revealing it.
    pub id: String,
    pub name: String,
    pub scope: TokenScope,
    pub(super) hash: String,
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
    pub(super) fn is_intact(&self, secret: &[u8; 32]) -> bool {
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
    pub(super) file: PathBuf,
    /// `None` if the user has no folder; then no token can be created or accepted.
    pub(super) secret: Option<PathBuf>,
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

    pub(super) fn known_secret(&self) -> anyhow::Result<Option<[u8; 32]>> {
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
    pub(super) fn stamps(&self) -> [Option<PathStamp>; 2] {
        [PathStamp::of(&self.file), self.secret.as_deref().and_then(PathStamp::of)]
    }
}

/// 256 random bits, as text.
fn random() -> anyhow::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("while asking the system for random bytes")?;
    Ok(blake3::Hash::from_bytes(bytes).to_hex().to_string())
}

pub(super) fn hashed(token: &str, secret: &[u8; 32]) -> blake3::Hash {
    blake3::keyed_hash(secret, token.as_bytes())
}
