// The start: takes the one-time secret out of the address before anything else, then draws.
import { render } from "preact";
import { exchange } from "./api";
import { App } from "./app";
import { ended, signedIn } from "./state";

async function start() {
  const secret = /^#k=([\w-]+)$/.exec(location.hash)?.[1];
  if (secret) {
    history.replaceState(null, "", "#/");
    dispatchEvent(new HashChangeEvent("hashchange"));
    try {
      await exchange(secret);
      signedIn.value = true;
    } catch {
      ended.value = "link";
    }
  }
  render(<App />, document.body);
}

start();
