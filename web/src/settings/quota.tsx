import { useQuery, useQueryClient } from "@tanstack/react-query";
import { api } from "../api/client";
import { usageQuery } from "../api/queries";
import { useSession } from "../session/session";
import { ErrorBox } from "../ui/error-box";
import { input } from "../ui/field";
import { Answer } from "../ui/loading";
import { Table } from "../ui/table";
import { useAction } from "../ui/use-action";

const rows = [
  ["Stored by its runs, bytes", "bytes", "bytesMax"],
  ["Runs that wait or work", "runs", "runsMax"],
  ["Sandboxes", "sandboxes", "sandboxesMax"],
  ["Memory of its sandboxes, MB", "memoryMb", "memoryMbMax"],
  ["Disk of its sandboxes, MB", "diskMb", "diskMbMax"],
  ["Processes of its sandboxes", "pids", "pidsMax"],
  ["Warm sandboxes", undefined, "warmSandboxesMax"],
] as const;
type Limit = (typeof rows)[number][2];

// What the company uses of the machine, beside what it may use.
export function Quota() {
  const { company, may } = useSession();
  const queries = useQueryClient();
  const query = useQuery(usageQuery(company.id));
  const save = useAction(async (limit: Limit, text: string) => {
    const value = text === "" ? null : Number(text);
    await api.patch("/api/companies/{company}/quota", { path: { company: company.id }, body: { [limit]: value } as Partial<Record<Limit, number | null>> });
    await queries.invalidateQueries(usageQuery(company.id));
  });
  return (
    <div className="flex flex-col gap-2 text-sm">
      <Answer query={query}>
        {(usage) => (
          <Table label="Quota" head={["", "In use", "At most"]}>
            {rows.map(([label, use, limit]) => (
              <tr key={limit}>
                <td>{label}</td>
                <td>{use ? usage[use] : ""}</td>
                <td>
                  {may("instance_admin") ? (
                    <input key={usage[limit] ?? "none"} type="number" min={0} className={input} aria-label={`At most: ${label}`} placeholder="no limit" disabled={save.busy} defaultValue={usage[limit] ?? ""}
                      onBlur={(event) => { if (event.target.value !== String(usage[limit] ?? "")) void save.run(limit, event.target.value); }} />
                  ) : (usage[limit] ?? "no limit")}
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Answer>
      <p className="text-muted">A run whose sandbox finds no room waits. An empty field follows the instance, and 0 is without a limit.</p>
      {save.error !== undefined && <ErrorBox error={save.error} />}
    </div>
  );
}
