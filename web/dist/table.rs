// Written by web/build.mjs.
static ASSETS: [Asset; 8] = [
    Asset {
        path: "/assets/app-6X7EAXHQ.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"fc2bca258a3df481\"",
        bytes: include_bytes!("assets/app-6X7EAXHQ.js"),
        gzip: include_bytes!("gzip/assets/app-6X7EAXHQ.js.gz"),
    },
    Asset {
        path: "/assets/chunk-U4PRTZXQ.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"9dbaaa1b267ebd74\"",
        bytes: include_bytes!("assets/chunk-U4PRTZXQ.js"),
        gzip: include_bytes!("gzip/assets/chunk-U4PRTZXQ.js.gz"),
    },
    Asset {
        path: "/assets/chunk-XF7OPFTC.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"f894805f7adf980f\"",
        bytes: include_bytes!("assets/chunk-XF7OPFTC.js"),
        gzip: include_bytes!("gzip/assets/chunk-XF7OPFTC.js.gz"),
    },
    Asset {
        path: "/assets/graph-6DECOQRF.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"7979a412a2203427\"",
        bytes: include_bytes!("assets/graph-6DECOQRF.js"),
        gzip: include_bytes!("gzip/assets/graph-6DECOQRF.js.gz"),
    },
    Asset {
        path: "/assets/style-6RE4BQR4.css",
        kind: "text/css; charset=utf-8",
        etag: "\"615dc2a200134c15\"",
        bytes: include_bytes!("assets/style-6RE4BQR4.css"),
        gzip: include_bytes!("gzip/assets/style-6RE4BQR4.css.gz"),
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
        etag: "\"6b23f667062bebae\"",
        bytes: include_bytes!("index.html"),
        gzip: include_bytes!("gzip/index.html.gz"),
    },
];
