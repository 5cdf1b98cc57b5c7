// Declares what E2B's provider declares: no reusable leases, though its config has a field for
// them.
export default {
  id: "berth.compat-e2b",
  apiVersion: 1,
  version: "0.1.0",
  displayName: "E2B",
  description: "Sandboxes of E2B, by the vendor's own SDK",
  author: "Berth",
  categories: ["automation"],
  capabilities: ["environment.drivers.register"],
  entrypoints: { worker: "worker.js" },
  environmentDrivers: [
    {
      driverKey: "e2b",
      kind: "sandbox_provider",
      displayName: "E2B",
      configSchema: {
        type: "object",
        properties: {
          template: { type: "string", default: "base" },
          apiKey: { type: "string", format: "secret-ref" },
          apiUrl: { type: "string" },
          timeoutMs: { type: "number", default: 3_600_000 },
          reuseLease: { type: "boolean", default: false },
        },
      },
    },
  ],
};
