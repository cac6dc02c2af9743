import { defineConfig } from "vitest/config";

// Machines that run tests are busy, so a test has a minute.
export default defineConfig({ test: { include: ["test/**/*.test.ts"], testTimeout: 60_000 } });
