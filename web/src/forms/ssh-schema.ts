import type { RJSFSchema } from "@rjsf/utils";

// What an ssh environment takes. The server has its rules in code, not as a schema; it names each field that it refuses.
export const sshSchema: RJSFSchema = {
  type: "object",
  required: ["host", "username", "remoteWorkspacePath"],
  properties: {
    host: { type: "string", minLength: 1, title: "Host", description: "A name or an address that this server can reach" },
    port: { type: "integer", minimum: 1, maximum: 65535, default: 22, title: "Port" },
    username: { type: "string", minLength: 1, title: "User" },
    remoteWorkspacePath: { type: "string", pattern: "^/", title: "Folder for work", description: "An absolute path on the host, such as /srv/berth" },
    privateKeySecretRef: { type: "string", format: "secret-ref", title: "Private key", maxLength: 65536 },
    knownHosts: { type: "string", format: "textarea", title: "Known hosts", description: "Lines of a known_hosts file; ssh-keyscan prints them" },
    strictHostKeyChecking: { type: "boolean", default: true, title: "Refuse a host whose key is not known" },
  },
};
