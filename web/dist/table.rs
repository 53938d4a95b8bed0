// Written by web/build.mjs.
static ASSETS: [Asset; 8] = [
    Asset {
        path: "/assets/app-R5NU2MSQ.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"3ee4d96fed2d2c42\"",
        bytes: include_bytes!("assets/app-R5NU2MSQ.js"),
        gzip: include_bytes!("gzip/assets/app-R5NU2MSQ.js.gz"),
    },
    Asset {
        path: "/assets/chunk-6W23YP5Z.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"07593d58922706c8\"",
        bytes: include_bytes!("assets/chunk-6W23YP5Z.js"),
        gzip: include_bytes!("gzip/assets/chunk-6W23YP5Z.js.gz"),
    },
    Asset {
        path: "/assets/chunk-U4PRTZXQ.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"9dbaaa1b267ebd74\"",
        bytes: include_bytes!("assets/chunk-U4PRTZXQ.js"),
        gzip: include_bytes!("gzip/assets/chunk-U4PRTZXQ.js.gz"),
    },
    Asset {
        path: "/assets/graph-HMAUO3W2.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"8b40430a6437d367\"",
        bytes: include_bytes!("assets/graph-HMAUO3W2.js"),
        gzip: include_bytes!("gzip/assets/graph-HMAUO3W2.js.gz"),
    },
    Asset {
        path: "/assets/style-PX33W6RA.css",
        kind: "text/css; charset=utf-8",
        etag: "\"106073e8cd6d3f7a\"",
        bytes: include_bytes!("assets/style-PX33W6RA.css"),
        gzip: include_bytes!("gzip/assets/style-PX33W6RA.css.gz"),
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
        etag: "\"bd036e47e434fb24\"",
        bytes: include_bytes!("index.html"),
        gzip: include_bytes!("gzip/index.html.gz"),
    },
];
