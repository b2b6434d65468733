import { App } from "./app";

await new App().start();
