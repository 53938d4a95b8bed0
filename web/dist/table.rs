// Written by web/build.mjs.
static ASSETS: [Asset; 8] = [
    Asset {
        path: "/assets/app-QQFHPYHW.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"e413fbda1978d1bd\"",
        bytes: include_bytes!("assets/app-QQFHPYHW.js"),
        gzip: include_bytes!("gzip/assets/app-QQFHPYHW.js.gz"),
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
        path: "/assets/graph-4OB6C3DV.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"7fcddcd8d8935baf\"",
        bytes: include_bytes!("assets/graph-4OB6C3DV.js"),
        gzip: include_bytes!("gzip/assets/graph-4OB6C3DV.js.gz"),
    },
    Asset {
        path: "/assets/style-W6JWM6LX.css",
        kind: "text/css; charset=utf-8",
        etag: "\"09b8c2304f34fb51\"",
        bytes: include_bytes!("assets/style-W6JWM6LX.css"),
        gzip: include_bytes!("gzip/assets/style-W6JWM6LX.css.gz"),
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
        etag: "\"d0a6ae09de1d0494\"",
        bytes: include_bytes!("index.html"),
        gzip: include_bytes!("gzip/index.html.gz"),
    },
];
