// Written by web/build.mjs.
static ASSETS: [Asset; 8] = [
    Asset {
        path: "/assets/app-T6EKNSGN.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"959d76faaf36e954\"",
        bytes: include_bytes!("assets/app-T6EKNSGN.js"),
        gzip: include_bytes!("gzip/assets/app-T6EKNSGN.js.gz"),
    },
    Asset {
        path: "/assets/chunk-E2L5O6Z2.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"e2ee2b06442b4889\"",
        bytes: include_bytes!("assets/chunk-E2L5O6Z2.js"),
        gzip: include_bytes!("gzip/assets/chunk-E2L5O6Z2.js.gz"),
    },
    Asset {
        path: "/assets/chunk-U4PRTZXQ.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"9dbaaa1b267ebd74\"",
        bytes: include_bytes!("assets/chunk-U4PRTZXQ.js"),
        gzip: include_bytes!("gzip/assets/chunk-U4PRTZXQ.js.gz"),
    },
    Asset {
        path: "/assets/graph-OUDBOCNF.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"e8373d02e7b8acc5\"",
        bytes: include_bytes!("assets/graph-OUDBOCNF.js"),
        gzip: include_bytes!("gzip/assets/graph-OUDBOCNF.js.gz"),
    },
    Asset {
        path: "/assets/style-KKVDOAP3.css",
        kind: "text/css; charset=utf-8",
        etag: "\"c651fb93af216938\"",
        bytes: include_bytes!("assets/style-KKVDOAP3.css"),
        gzip: include_bytes!("gzip/assets/style-KKVDOAP3.css.gz"),
    },
    Asset {
        path: "/assets/temml-VH3DURXY.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"8cfe045d5b8b3eff\"",
        bytes: include_bytes!("assets/temml-VH3DURXY.js"),
        gzip: include_bytes!("gzip/assets/temml-VH3DURXY.js.gz"),
    },
    Asset {
        path: "/icon.svg",
        kind: "image/svg+xml",
        etag: "\"648841d2dd823043\"",
        bytes: include_bytes!("icon.svg"),
        gzip: include_bytes!("gzip/icon.svg.gz"),
    },
    Asset {
        path: "/",
        kind: "text/html; charset=utf-8",
        etag: "\"cb4dee10fd58ea94\"",
        bytes: include_bytes!("index.html"),
        gzip: include_bytes!("gzip/index.html.gz"),
    },
];
