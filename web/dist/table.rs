// Written by web/build.mjs.
static ASSETS: [Asset; 8] = [
    Asset {
        path: "/assets/app-FFGGI5O4.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"7e27f9a06204229e\"",
        bytes: include_bytes!("assets/app-FFGGI5O4.js"),
        gzip: include_bytes!("gzip/assets/app-FFGGI5O4.js.gz"),
    },
    Asset {
        path: "/assets/chunk-H4KWU4O3.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"d2c910aff1d3fddf\"",
        bytes: include_bytes!("assets/chunk-H4KWU4O3.js"),
        gzip: include_bytes!("gzip/assets/chunk-H4KWU4O3.js.gz"),
    },
    Asset {
        path: "/assets/chunk-U4PRTZXQ.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"9dbaaa1b267ebd74\"",
        bytes: include_bytes!("assets/chunk-U4PRTZXQ.js"),
        gzip: include_bytes!("gzip/assets/chunk-U4PRTZXQ.js.gz"),
    },
    Asset {
        path: "/assets/graph-USMJK4LA.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"afc42c78376798fd\"",
        bytes: include_bytes!("assets/graph-USMJK4LA.js"),
        gzip: include_bytes!("gzip/assets/graph-USMJK4LA.js.gz"),
    },
    Asset {
        path: "/assets/style-WS5K5N5W.css",
        kind: "text/css; charset=utf-8",
        etag: "\"972d164797a88cee\"",
        bytes: include_bytes!("assets/style-WS5K5N5W.css"),
        gzip: include_bytes!("gzip/assets/style-WS5K5N5W.css.gz"),
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
        etag: "\"0747535c60de692e\"",
        bytes: include_bytes!("index.html"),
        gzip: include_bytes!("gzip/index.html.gz"),
    },
];
