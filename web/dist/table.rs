// Written by web/build.mjs.
static ASSETS: [Asset; 8] = [
    Asset {
        path: "/assets/app-WCET3HHK.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"7885e81ed3bc9b96\"",
        bytes: include_bytes!("assets/app-WCET3HHK.js"),
        gzip: include_bytes!("gzip/assets/app-WCET3HHK.js.gz"),
    },
    Asset {
        path: "/assets/chunk-I2Y7SS2N.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"939a30552be16b17\"",
        bytes: include_bytes!("assets/chunk-I2Y7SS2N.js"),
        gzip: include_bytes!("gzip/assets/chunk-I2Y7SS2N.js.gz"),
    },
    Asset {
        path: "/assets/chunk-U4PRTZXQ.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"9dbaaa1b267ebd74\"",
        bytes: include_bytes!("assets/chunk-U4PRTZXQ.js"),
        gzip: include_bytes!("gzip/assets/chunk-U4PRTZXQ.js.gz"),
    },
    Asset {
        path: "/assets/graph-3FUBQGHD.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"e6d3d787c6b863a9\"",
        bytes: include_bytes!("assets/graph-3FUBQGHD.js"),
        gzip: include_bytes!("gzip/assets/graph-3FUBQGHD.js.gz"),
    },
    Asset {
        path: "/assets/style-GJHBK4BL.css",
        kind: "text/css; charset=utf-8",
        etag: "\"bf94e9017f709de7\"",
        bytes: include_bytes!("assets/style-GJHBK4BL.css"),
        gzip: include_bytes!("gzip/assets/style-GJHBK4BL.css.gz"),
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
        etag: "\"b75890ad2b280779\"",
        bytes: include_bytes!("index.html"),
        gzip: include_bytes!("gzip/index.html.gz"),
    },
];
