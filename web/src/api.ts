// The server: the same tools that agents call, the whole graph, and one stream of changes. Nothing else is read.

import { kept, place } from "./place";

const SESSION = kept("session");

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code = "",
  ) {
    super(message);
  }
}

/** Who listens for the end of the session. */
let onSignedOut = (_ended: "session" | "token") => {};
export function whenSignedOut(listener: (ended: "session" | "token") => void) {
  onSignedOut = listener;
}

export const token = () => sessionStorage.getItem(SESSION);
export function setToken(value: string | null) {
  if (value) sessionStorage.setItem(SESSION, value);
  else sessionStorage.removeItem(SESSION);
}

/** Exchanges the one-time secret of `quipu open` for a session. */
export async function exchange(secret: string): Promise<void> {
  const response = await fetch("/api/session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ secret }),
  });
  const answer = await response.json();
  if (!answer.token) throw new ApiError(response.status, answer.error?.message ?? "the link is no longer valid");
  setToken(answer.token);
}

async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const own = token();
  if (own) headers.set("authorization", `Bearer ${own}`);
  let response: Response;
  try {
    response = await fetch(place + path, { ...init, headers });
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    throw new ApiError(0, "the server does not answer");
  }
  if (response.status === 401) {
    // Once for all requests of a token, and not for one that was replaced meanwhile.
    if (own && own === token()) {
      setToken(null);
      onSignedOut(own.startsWith("qx_") ? "session" : "token");
    }
    throw new ApiError(401, "the session has ended");
  }
  return response;
}

async function failure(response: Response): Promise<ApiError> {
  const answer = await response.json().catch(() => null);
  return new ApiError(response.status, answer?.error?.message ?? `the server answered ${response.status}`);
}

export interface Called<T> {
  answer: T;
  warnings: string[];
}

/** Calls a tool as an agent does, with the warnings that came with the answer. */
export async function called<T>(tool: string, args: object = {}, signal?: AbortSignal): Promise<Called<T>> {
  const response = await request(`/api/call/${tool}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(args),
    signal,
  });
  if (!response.ok) throw await failure(response);
  const body = await response.json();
  if (body.error) throw new ApiError(200, body.error.message, body.error.code);
  return { answer: body.answer as T, warnings: body.warnings ?? [] };
}

export async function call<T>(tool: string, args: object = {}, signal?: AbortSignal): Promise<T> {
  return (await called<T>(tool, args, signal)).answer;
}

/** An image of the vault that a note shows. */
export async function image(note: string, target: string): Promise<Blob> {
  const body = JSON.stringify({ note, target });
  const response = await request("/api/image", { method: "POST", headers: { "content-type": "application/json" }, body });
  if (!response.ok || !response.headers.get("content-type")?.startsWith("image/")) throw await failure(response);
  return response.blob();
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await request(path, { signal });
  if (!response.ok) throw await failure(response);
  return (await response.json()) as T;
}

export interface ServerEvent {
  event: string;
  data: any;
}

/** Reads the stream of changes until it ends. Not EventSource: that cannot send the Authorization header. */
export async function events(tell: (event: ServerEvent) => void, signal: AbortSignal): Promise<void> {
  const response = await request("/api/events", { signal });
  if (!response.ok || !response.body) throw await failure(response);
  tell({ event: "open", data: null });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    buffer += value;
    for (let end = buffer.indexOf("\n\n"); end >= 0; end = buffer.indexOf("\n\n")) {
      const event = parse(buffer.slice(0, end));
      buffer = buffer.slice(end + 2);
      if (event) tell(event);
    }
  }
}

function parse(block: string): ServerEvent | null {
  let event = "message";
  let data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) event = line.slice(6).trim();
    else if (line.startsWith("data:")) data += line.slice(5);
  }
  return data ? { event, data: JSON.parse(data) } : null;
}
