// Written by web/build.mjs.
static ASSETS: [Asset; 8] = [
    Asset {
        path: "/assets/app-ITRIKBQG.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"e9b2ecb6bb9255f7\"",
        bytes: include_bytes!("assets/app-ITRIKBQG.js"),
        gzip: include_bytes!("gzip/assets/app-ITRIKBQG.js.gz"),
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
        path: "/assets/graph-TXSBXJ45.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"cb5d1828e808fe91\"",
        bytes: include_bytes!("assets/graph-TXSBXJ45.js"),
        gzip: include_bytes!("gzip/assets/graph-TXSBXJ45.js.gz"),
    },
    Asset {
        path: "/assets/style-NFZRS27V.css",
        kind: "text/css; charset=utf-8",
        etag: "\"b4d472288486546e\"",
        bytes: include_bytes!("assets/style-NFZRS27V.css"),
        gzip: include_bytes!("gzip/assets/style-NFZRS27V.css.gz"),
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
        etag: "\"6f63995bea2fbfc0\"",
        bytes: include_bytes!("index.html"),
        gzip: include_bytes!("gzip/index.html.gz"),
    },
];
