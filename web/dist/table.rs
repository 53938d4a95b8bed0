// Written by web/build.mjs.
static ASSETS: [Asset; 8] = [
    Asset {
        path: "/assets/app-6KPKZYIO.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"5a55083e81758091\"",
        bytes: include_bytes!("assets/app-6KPKZYIO.js"),
        gzip: include_bytes!("gzip/assets/app-6KPKZYIO.js.gz"),
    },
    Asset {
        path: "/assets/chunk-HZKTRH34.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"953b187c879fe129\"",
        bytes: include_bytes!("assets/chunk-HZKTRH34.js"),
        gzip: include_bytes!("gzip/assets/chunk-HZKTRH34.js.gz"),
    },
    Asset {
        path: "/assets/chunk-U4PRTZXQ.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"9dbaaa1b267ebd74\"",
        bytes: include_bytes!("assets/chunk-U4PRTZXQ.js"),
        gzip: include_bytes!("gzip/assets/chunk-U4PRTZXQ.js.gz"),
    },
    Asset {
        path: "/assets/graph-KLFWKDV4.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"6e78abe96f87c02e\"",
        bytes: include_bytes!("assets/graph-KLFWKDV4.js"),
        gzip: include_bytes!("gzip/assets/graph-KLFWKDV4.js.gz"),
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
        etag: "\"c62f9b0262af5cba\"",
        bytes: include_bytes!("index.html"),
        gzip: include_bytes!("gzip/index.html.gz"),
    },
];
