import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { Server } from "./server.mjs";

// Copies one run many times, with different ids, times, states and commands: a second apart, the
// oldest first.
const program = `
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
count = int(sys.argv[2])
columns = [row[1] for row in db.execute("pragma table_info(heartbeat_runs)")]
changed = {
    "id": "substr(id, 1, 24) || printf('%012x', n)",
    "status": "case n % 10 when 3 then 'failed' when 7 then 'cancelled' else 'succeeded' end",
    "command": "replace(command, 'the-first', 'copy-' || n)",
    "lease_id": "null",
    "created_at": f"created_at - ({count} - n) * 1000",
    "started_at": f"started_at - ({count} - n) * 1000",
    "finished_at": f"finished_at - ({count} - n) * 1000",
}
db.execute(f"""
    insert into heartbeat_runs ({", ".join(columns)})
    with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < {count} - 1)
    select {", ".join(changed.get(column, column) for column in columns)} from heartbeat_runs, numbers""")
db.commit()
`;

// A server whose company has that many runs, one of which is real.
export async function serverWithRuns(count) {
  const server = new Server();
  try {
    await server.start();
    await server.run("echo the-first");
    await server.stop();
    const filled = spawnSync("python3", ["-c", program, join(server.home, "berth.db"), String(count)], { encoding: "utf8" });
    if (filled.status !== 0) throw new Error(`the runs could not be written: ${filled.stderr}`);
    return await server.start();
  } catch (error) {
    await server.end();
    throw error;
  }
}
