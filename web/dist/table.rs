// Written by web/build.mjs.
static ASSETS: [Asset; 8] = [
    Asset {
        path: "/assets/app-F56SNADY.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"b5647261e3f09625\"",
        bytes: include_bytes!("assets/app-F56SNADY.js"),
        gzip: include_bytes!("gzip/assets/app-F56SNADY.js.gz"),
    },
    Asset {
        path: "/assets/chunk-544DN2PP.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"a0615c5021050423\"",
        bytes: include_bytes!("assets/chunk-544DN2PP.js"),
        gzip: include_bytes!("gzip/assets/chunk-544DN2PP.js.gz"),
    },
    Asset {
        path: "/assets/chunk-U4PRTZXQ.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"9dbaaa1b267ebd74\"",
        bytes: include_bytes!("assets/chunk-U4PRTZXQ.js"),
        gzip: include_bytes!("gzip/assets/chunk-U4PRTZXQ.js.gz"),
    },
    Asset {
        path: "/assets/graph-CALDTK5G.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"bb343e6a406e8bd8\"",
        bytes: include_bytes!("assets/graph-CALDTK5G.js"),
        gzip: include_bytes!("gzip/assets/graph-CALDTK5G.js.gz"),
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
        etag: "\"dea1a725ef4736d8\"",
        bytes: include_bytes!("index.html"),
        gzip: include_bytes!("gzip/index.html.gz"),
    },
];
