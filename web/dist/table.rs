// Written by web/build.mjs.
static ASSETS: [Asset; 8] = [
    Asset {
        path: "/assets/app-WUVEZRFU.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"35106da91c11b288\"",
        bytes: include_bytes!("assets/app-WUVEZRFU.js"),
        gzip: include_bytes!("gzip/assets/app-WUVEZRFU.js.gz"),
    },
    Asset {
        path: "/assets/chunk-QJIRZ3UL.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"ecd90a22301a9259\"",
        bytes: include_bytes!("assets/chunk-QJIRZ3UL.js"),
        gzip: include_bytes!("gzip/assets/chunk-QJIRZ3UL.js.gz"),
    },
    Asset {
        path: "/assets/chunk-U4PRTZXQ.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"9dbaaa1b267ebd74\"",
        bytes: include_bytes!("assets/chunk-U4PRTZXQ.js"),
        gzip: include_bytes!("gzip/assets/chunk-U4PRTZXQ.js.gz"),
    },
    Asset {
        path: "/assets/graph-CZNQ2O3S.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"e9f7cfa4753a4b78\"",
        bytes: include_bytes!("assets/graph-CZNQ2O3S.js"),
        gzip: include_bytes!("gzip/assets/graph-CZNQ2O3S.js.gz"),
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
        etag: "\"c85127d339c464b5\"",
        bytes: include_bytes!("index.html"),
        gzip: include_bytes!("gzip/index.html.gz"),
    },
];
