// Written by web/build.mjs.
static ASSETS: [Asset; 8] = [
    Asset {
        path: "/assets/app-BPO5CH7P.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"6ceadb45a6b3e011\"",
        bytes: include_bytes!("assets/app-BPO5CH7P.js"),
        gzip: include_bytes!("gzip/assets/app-BPO5CH7P.js.gz"),
    },
    Asset {
        path: "/assets/chunk-K5FLJGOI.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"92df26d408cc1513\"",
        bytes: include_bytes!("assets/chunk-K5FLJGOI.js"),
        gzip: include_bytes!("gzip/assets/chunk-K5FLJGOI.js.gz"),
    },
    Asset {
        path: "/assets/chunk-U4PRTZXQ.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"9dbaaa1b267ebd74\"",
        bytes: include_bytes!("assets/chunk-U4PRTZXQ.js"),
        gzip: include_bytes!("gzip/assets/chunk-U4PRTZXQ.js.gz"),
    },
    Asset {
        path: "/assets/graph-AEPQYGIR.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"2662ba4e26aed34f\"",
        bytes: include_bytes!("assets/graph-AEPQYGIR.js"),
        gzip: include_bytes!("gzip/assets/graph-AEPQYGIR.js.gz"),
    },
    Asset {
        path: "/assets/style-QKR3VDQG.css",
        kind: "text/css; charset=utf-8",
        etag: "\"90c764ae8fd01ca4\"",
        bytes: include_bytes!("assets/style-QKR3VDQG.css"),
        gzip: include_bytes!("gzip/assets/style-QKR3VDQG.css.gz"),
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
        etag: "\"9303add9d4159b17\"",
        bytes: include_bytes!("index.html"),
        gzip: include_bytes!("gzip/index.html.gz"),
    },
];
