// Where the page is: a server of a database has it at `/g/NAME/` too, for each of its graphs.

/** How the addresses of the page's data begin: `/g/NAME`, or nothing. */
export const place = /^\/g\/[^/]+/.exec(location.pathname)?.[0] ?? "";

/** The name under which the browser keeps something for this page. What belongs to one graph is not shown beside another. */
export const kept = (name: string) => `quipu.${name}${place && ` ${place}`}`;
