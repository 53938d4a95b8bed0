// Written by web/build.mjs.
static ASSETS: [Asset; 8] = [
    Asset {
        path: "/assets/app-Y3DZL3XM.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"d67ef754d6aaae0f\"",
        bytes: include_bytes!("assets/app-Y3DZL3XM.js"),
        gzip: include_bytes!("gzip/assets/app-Y3DZL3XM.js.gz"),
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
        path: "/assets/graph-65K6JSPZ.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"d5a4c7b20246e12f\"",
        bytes: include_bytes!("assets/graph-65K6JSPZ.js"),
        gzip: include_bytes!("gzip/assets/graph-65K6JSPZ.js.gz"),
    },
    Asset {
        path: "/assets/style-MK65SNTK.css",
        kind: "text/css; charset=utf-8",
        etag: "\"ab7fbd2f29ee034c\"",
        bytes: include_bytes!("assets/style-MK65SNTK.css"),
        gzip: include_bytes!("gzip/assets/style-MK65SNTK.css.gz"),
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
        etag: "\"720714d67d8e0723\"",
        bytes: include_bytes!("index.html"),
        gzip: include_bytes!("gzip/index.html.gz"),
    },
];
