// Written by web/build.mjs.
static ASSETS: [Asset; 8] = [
    Asset {
        path: "/assets/app-TQHZUDPT.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"f7e4e55260a714e6\"",
        bytes: include_bytes!("assets/app-TQHZUDPT.js"),
        gzip: include_bytes!("gzip/assets/app-TQHZUDPT.js.gz"),
    },
    Asset {
        path: "/assets/chunk-CAPQYB5N.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"31b2e8774e52aac3\"",
        bytes: include_bytes!("assets/chunk-CAPQYB5N.js"),
        gzip: include_bytes!("gzip/assets/chunk-CAPQYB5N.js.gz"),
    },
    Asset {
        path: "/assets/chunk-U4PRTZXQ.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"9dbaaa1b267ebd74\"",
        bytes: include_bytes!("assets/chunk-U4PRTZXQ.js"),
        gzip: include_bytes!("gzip/assets/chunk-U4PRTZXQ.js.gz"),
    },
    Asset {
        path: "/assets/graph-572U4LXF.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"ee799bf1d25ac10e\"",
        bytes: include_bytes!("assets/graph-572U4LXF.js"),
        gzip: include_bytes!("gzip/assets/graph-572U4LXF.js.gz"),
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
        etag: "\"efaf2d91960f27f1\"",
        bytes: include_bytes!("index.html"),
        gzip: include_bytes!("gzip/index.html.gz"),
    },
];
