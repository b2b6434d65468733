import { defineConfig } from "vitest/config";

// The front door serves dist/ as it is. In development `vite` passes the API on to a local server.
export default defineConfig({
  build: {
    target: "es2022",
    // The page's policy allows no data: addresses for scripts or styles.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600, // livekit-client, which only LiveKit's players load
  },
  server: {
    host: "127.0.0.1",
    proxy: Object.fromEntries(
      ["/v1", "/readyz", "/healthz"].map((path) => [path, "http://127.0.0.1:8000"]),
    ),
  },
  test: {
    include: ["src/**/*.test.ts"],
    environment: "node",
    testTimeout: 60_000, // clocks are the tests' own: what takes seconds is a busy machine
    hookTimeout: 60_000,
  },
});
