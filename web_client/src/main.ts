import { App } from "./app";
import { watchedBy } from "./watch/link";

const ticket = watchedBy(location.hash);
if (ticket === null) {
  await new App().start();
} else {
  const { watch } = await import("./watch/page");
  await watch(ticket);
}
