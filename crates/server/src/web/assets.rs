//! The files of the page, built from `web/` and embedded. Their names carry a hash of their content, so a browser keeps them permanently;
//! the page that names them is asked for each time.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// A file of the page.
pub(super) struct Asset {
    pub(super) path: &'static str,
    kind: &'static str,
    etag: &'static str,
    bytes: &'static [u8],
    gzip: &'static [u8],
}

impl Asset {
    pub(super) fn is_page(&self) -> bool {
        self.path == "/"
    }
}

include!("../../../../web/dist/table.rs");

/// Scripts and styles of our own alone, no frame around or inside, nothing sent elsewhere. Styles of elements are set by script
/// through the object model, which needs no exception.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types dompurify";

pub(super) fn all() -> impl Iterator<Item = &'static Asset> {
    ASSETS.iter()
}

pub(super) fn serve(asset: &'static Asset, asked: &HeaderMap) -> Response {
    let says = |name, what: &str| {
        asked.get(name).and_then(|value| value.to_str().ok()).is_some_and(|value| value.contains(what))
    };
    let mut response = if says(header::IF_NONE_MATCH, asset.etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if says(header::ACCEPT_ENCODING, "gzip") {
        ([(header::CONTENT_ENCODING, "gzip")], Body::from(asset.gzip)).into_response()
    } else {
        Body::from(asset.bytes).into_response()
    };
    let kept = if asset.is_page() { "no-cache" } else { "public, max-age=31536000, immutable" };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, asset.kind),
        (header::ETAG, asset.etag),
        (header::CACHE_CONTROL, kept),
        (header::VARY, "accept-encoding"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_only_files_that_are_embedded() {
        let page = all().find(|asset| asset.is_page()).expect("there is a page");
        let text = std::str::from_utf8(page.bytes).unwrap();
        let named: Vec<&str> = text.split('"').filter(|word| word.starts_with("/assets/")).collect();
        assert_eq!(named.len(), 2, "{text}");
        for name in named {
            assert!(all().any(|asset| asset.path == name), "{name} is not embedded");
        }
        assert!(!text.contains("<script>") && !text.contains("http://") && !text.contains("https://"), "{text}");
    }

    #[test]
    fn known_etag_is_answered_with_not_modified() {
        let page = all().next().unwrap();
        let mut asked = HeaderMap::new();
        assert_eq!(serve(page, &asked).status(), StatusCode::OK);
        asked.insert(header::IF_NONE_MATCH, HeaderValue::from_static(page.etag));
        assert_eq!(serve(page, &asked).status(), StatusCode::NOT_MODIFIED);
    }
}
