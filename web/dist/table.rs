// Written by web/build.mjs.
static ASSETS: [Asset; 8] = [
    Asset {
        path: "/assets/app-D7A3DLAK.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"34f62c7bf67e4599\"",
        bytes: include_bytes!("assets/app-D7A3DLAK.js"),
        gzip: include_bytes!("gzip/assets/app-D7A3DLAK.js.gz"),
    },
    Asset {
        path: "/assets/chunk-SV6SXLKE.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"4a0843c660fed9bc\"",
        bytes: include_bytes!("assets/chunk-SV6SXLKE.js"),
        gzip: include_bytes!("gzip/assets/chunk-SV6SXLKE.js.gz"),
    },
    Asset {
        path: "/assets/chunk-U4PRTZXQ.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"9dbaaa1b267ebd74\"",
        bytes: include_bytes!("assets/chunk-U4PRTZXQ.js"),
        gzip: include_bytes!("gzip/assets/chunk-U4PRTZXQ.js.gz"),
    },
    Asset {
        path: "/assets/graph-3ZFLNRKO.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"b82d485c04f25536\"",
        bytes: include_bytes!("assets/graph-3ZFLNRKO.js"),
        gzip: include_bytes!("gzip/assets/graph-3ZFLNRKO.js.gz"),
    },
    Asset {
        path: "/assets/style-OZ33RIAK.css",
        kind: "text/css; charset=utf-8",
        etag: "\"73ec042febd99025\"",
        bytes: include_bytes!("assets/style-OZ33RIAK.css"),
        gzip: include_bytes!("gzip/assets/style-OZ33RIAK.css.gz"),
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
        etag: "\"ad9f202c8ef10029\"",
        bytes: include_bytes!("index.html"),
        gzip: include_bytes!("gzip/index.html.gz"),
    },
];
