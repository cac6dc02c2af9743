import { defineConfig } from "vitest/config";

// Generous, because machines that run tests can be busy.
export default defineConfig({
  test: { include: ["test/**/*.test.ts"], globalSetup: "test/temporary_files.ts", testTimeout: 60_000, env: { DO_NOT_TRACK: "" } },
});
