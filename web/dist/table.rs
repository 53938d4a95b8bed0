// Written by web/build.mjs.
static ASSETS: [Asset; 8] = [
    Asset {
        path: "/assets/app-25HH5I37.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"147c9f365a91019e\"",
        bytes: include_bytes!("assets/app-25HH5I37.js"),
        gzip: include_bytes!("gzip/assets/app-25HH5I37.js.gz"),
    },
    Asset {
        path: "/assets/chunk-FGU2QNOG.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"15289190761bc59b\"",
        bytes: include_bytes!("assets/chunk-FGU2QNOG.js"),
        gzip: include_bytes!("gzip/assets/chunk-FGU2QNOG.js.gz"),
    },
    Asset {
        path: "/assets/chunk-U4PRTZXQ.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"9dbaaa1b267ebd74\"",
        bytes: include_bytes!("assets/chunk-U4PRTZXQ.js"),
        gzip: include_bytes!("gzip/assets/chunk-U4PRTZXQ.js.gz"),
    },
    Asset {
        path: "/assets/graph-SOCTH4GL.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"4f8170825e742675\"",
        bytes: include_bytes!("assets/graph-SOCTH4GL.js"),
        gzip: include_bytes!("gzip/assets/graph-SOCTH4GL.js.gz"),
    },
    Asset {
        path: "/assets/style-MIMRRXY6.css",
        kind: "text/css; charset=utf-8",
        etag: "\"998a362196d29493\"",
        bytes: include_bytes!("assets/style-MIMRRXY6.css"),
        gzip: include_bytes!("gzip/assets/style-MIMRRXY6.css.gz"),
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
        etag: "\"471157019e284f54\"",
        bytes: include_bytes!("index.html"),
        gzip: include_bytes!("gzip/index.html.gz"),
    },
];
