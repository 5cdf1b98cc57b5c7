import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Skip } from "./runner.mjs";

const program = `
import json, sys
sys.path.insert(0, sys.argv[1])
from sshd import Sshd
host = Sshd(sys.argv[2]).start()
print(json.dumps(host.config()), flush=True)
sys.stdin.read()
host.stop()
`;

// The private sshd of the end-to-end tests, for as long as it is needed.
export async function openSshHost() {
  if (!existsSync("/usr/sbin/sshd")) throw new Skip("there is no /usr/sbin/sshd");
  const folder = mkdtempSync(join(tmpdir(), "berth-web-ssh-"));
  const e2e = fileURLToPath(new URL("../../e2e", import.meta.url));
  const child = spawn("python3", ["-c", program, e2e, join(folder, "host")], { stdio: ["pipe", "pipe", "inherit"] });
  const config = await new Promise((resolve, reject) => {
    let said = "";
    child.stdout.on("data", (bytes) => {
      said += bytes;
      if (said.includes("\n")) resolve(JSON.parse(said));
    });
    child.once("exit", (code) => reject(new Error(`the ssh host ended with ${code}`)));
  });
  const close = async () => {
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.stdin.end();
    await gone;
    rmSync(folder, { recursive: true, force: true });
  };
  return { config, close };
}
