// Written by web/build.mjs.
static ASSETS: [Asset; 8] = [
    Asset {
        path: "/assets/app-OYIWOMBZ.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"654eee493ca5ef8f\"",
        bytes: include_bytes!("assets/app-OYIWOMBZ.js"),
        gzip: include_bytes!("gzip/assets/app-OYIWOMBZ.js.gz"),
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
        path: "/assets/graph-E6ZJVPIS.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"df38a242213e1553\"",
        bytes: include_bytes!("assets/graph-E6ZJVPIS.js"),
        gzip: include_bytes!("gzip/assets/graph-E6ZJVPIS.js.gz"),
    },
    Asset {
        path: "/assets/style-VE3HF4P2.css",
        kind: "text/css; charset=utf-8",
        etag: "\"352d0dba71b1ae8d\"",
        bytes: include_bytes!("assets/style-VE3HF4P2.css"),
        gzip: include_bytes!("gzip/assets/style-VE3HF4P2.css.gz"),
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
        etag: "\"038d13f1ce961fe5\"",
        bytes: include_bytes!("index.html"),
        gzip: include_bytes!("gzip/index.html.gz"),
    },
];
