import { readFileSync } from "node:fs";

// The newer dialect has byte streams, and a manifest may not declare what its worker cannot answer.
const sdk = new URL("./node_modules/@paperclipai/plugin-sdk/package.json", import.meta.url);
const duplexCommandStream = Number(JSON.parse(readFileSync(sdk, "utf8")).version.split(".")[1]) >= 831;

// A sandbox provider for the tests on the published SDK: real commands in temporary folders.
export default {
  id: "berth.compat",
  apiVersion: 1,
  version: "0.1.0",
  displayName: "Compat",
  description: "Runs commands in a temporary folder",
  author: "Berth",
  categories: ["automation"],
  capabilities: ["environment.drivers.register", "plugin.state.read"],
  entrypoints: { worker: "worker.js" },
  environmentDrivers: [
    {
      driverKey: "compat",
      kind: "sandbox_provider",
      displayName: "Compat",
      configSchema: { type: "object", properties: { image: { type: "string" } } },
      supportsReusableLeases: true,
      sandboxCapabilities: { incrementalSessionOutput: true, duplexCommandStream },
      supportsLoginPty: true,
    },
  ],
};
