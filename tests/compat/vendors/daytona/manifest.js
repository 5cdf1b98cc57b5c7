// Declares what Daytona's provider declares: reusable leases, live output, its own file transfer.
export default {
  id: "berth.compat-daytona",
  apiVersion: 1,
  version: "0.1.0",
  displayName: "Daytona",
  description: "Sandboxes of Daytona, by the vendor's own SDK",
  author: "Berth",
  categories: ["automation"],
  capabilities: ["environment.drivers.register"],
  entrypoints: { worker: "worker.js" },
  environmentDrivers: [
    {
      driverKey: "daytona",
      kind: "sandbox_provider",
      displayName: "Daytona",
      configSchema: {
        type: "object",
        properties: {
          apiKey: { type: "string", format: "secret-ref" },
          apiUrl: { type: "string" },
          image: { type: "string", default: "daytonaio/sandbox:0.8.0" },
          timeoutMs: { type: "number", default: 300_000 },
          reuseLease: { type: "boolean", default: false },
        },
      },
      supportsReusableLeases: true,
      sandboxCapabilities: { incrementalSessionOutput: true },
    },
  ],
};
