// A sandbox provider of the tests on the published SDK: real commands in temporary folders.
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
      sandboxCapabilities: { incrementalSessionOutput: true, duplexCommandStream: true },
      supportsLoginPty: true,
    },
  ],
};
