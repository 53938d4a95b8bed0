//! An identity provider for tests: one key, and the tokens (JWT) that it signs.

use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::{Value, json};

pub use jsonwebtoken::Algorithm;

/// The provider's issuer.
pub const ISSUER: &str = "https://login.example";

/// The server that its tokens are for.
pub const RESOURCE: &str = "https://notes.example/mcp";

const PUBLIC: &str = "RiANuVxtSv7ytg7EQPGIFC7bpkukD8rag6Bn7_uubbE";

/// PKCS #8 of an Ed25519 key for tests only.
const PRIVATE: [u8; 48] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20, 0x51, 0x3a, 0xa9,
    0x94, 0xc5, 0xe0, 0x46, 0x26, 0xe1, 0x83, 0x30, 0x77, 0x70, 0x82, 0xb8, 0xa0, 0x93, 0x0f, 0xab, 0x02, 0x37, 0xd6,
    0x26, 0xbd, 0x0c, 0xce, 0x38, 0x22, 0x7b, 0x21, 0xdb, 0xb8,
];

/// Its public keys, as it publishes them (JWKS).
pub fn keys() -> String {
    let key = json!({ "kty": "OKP", "crv": "Ed25519", "x": PUBLIC, "kid": "one", "alg": "EdDSA", "use": "sig" });
    json!({ "keys": [key] }).to_string()
}

/// A token of Ada's, for writing at [`RESOURCE`] until the end of the century.
pub fn token() -> String {
    token_with("sub", json!("ada"))
}

/// Like [`token`], with another value of one claim.
pub fn token_with(claim: &str, value: Value) -> String {
    signed(claim, value, Algorithm::EdDSA, "one")
}

/// Like [`token_with`], signed with another algorithm or key, by name.
///
/// # Panics
/// If the algorithm is neither `EdDSA` nor one with a shared secret.
pub fn signed(claim: &str, value: Value, algorithm: Algorithm, key: &str) -> String {
    let mut claims = json!({
        "iss": ISSUER, "aud": RESOURCE, "sub": "ada", "exp": 4_102_444_800_u64, "scope": "openid quipu:write",
    });
    claims[claim] = value;
    let header = Header { kid: Some(key.to_owned()), ..Header::new(algorithm) };
    let key = match algorithm {
        Algorithm::EdDSA => EncodingKey::from_ed_der(&PRIVATE),
        // A server that uses the public key as a secret would accept it.
        _ => EncodingKey::from_secret(PUBLIC.as_bytes()),
    };
    encode(&header, &claims, &key).expect("claims are JSON, and the key is one for the algorithm")
}

/// Like [`token`], with a wrong signature.
pub fn forged() -> String {
    let mut token = token();
    token.replace_range(token.len() - 4..token.len() - 1, "AAA");
    token
}
