// Written by web/build.mjs.
static ASSETS: [Asset; 8] = [
    Asset {
        path: "/assets/app-ZNUQDTDE.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"1e8d26b18257166d\"",
        bytes: include_bytes!("assets/app-ZNUQDTDE.js"),
        gzip: include_bytes!("gzip/assets/app-ZNUQDTDE.js.gz"),
    },
    Asset {
        path: "/assets/chunk-EHC3Z2JM.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"bb88186156dc6d49\"",
        bytes: include_bytes!("assets/chunk-EHC3Z2JM.js"),
        gzip: include_bytes!("gzip/assets/chunk-EHC3Z2JM.js.gz"),
    },
    Asset {
        path: "/assets/chunk-U4PRTZXQ.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"9dbaaa1b267ebd74\"",
        bytes: include_bytes!("assets/chunk-U4PRTZXQ.js"),
        gzip: include_bytes!("gzip/assets/chunk-U4PRTZXQ.js.gz"),
    },
    Asset {
        path: "/assets/graph-GU2VJ6DN.js",
        kind: "text/javascript; charset=utf-8",
        etag: "\"cda21cf9bbea8a69\"",
        bytes: include_bytes!("assets/graph-GU2VJ6DN.js"),
        gzip: include_bytes!("gzip/assets/graph-GU2VJ6DN.js.gz"),
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
        etag: "\"91d26cb62d156170\"",
        bytes: include_bytes!("index.html"),
        gzip: include_bytes!("gzip/index.html.gz"),
    },
];
