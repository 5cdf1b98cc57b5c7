import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";
import { bytes, count, duration } from "../format";
import { Facts } from "../ui/page";
import { Answer } from "../ui/loading";

export function Usage({ lease }: { lease: string }) {
  const query = useQuery({
    queryKey: ["usage", lease],
    queryFn: ({ signal }) => api.get("/api/environment-leases/{lease}/usage", { path: { lease }, signal }),
  });
  return (
    <Answer query={query}>
      {(usage) => (
        <Facts rows={[
          ["Processor", duration(usage.cpuMs)],
          ["Memory", `${bytes(usage.memoryBytes)} now, ${bytes(usage.memoryBytesPeak)} at most`],
          ["Processes", count(usage.processes, "process", "processes")],
          ["Disk", usage.readBytes == null ? "not counted here"
            : `${bytes(usage.readBytes)} read, ${bytes(usage.writtenBytes ?? 0)} written`],
          ["Out of memory", usage.oomKills ? count(usage.oomKills, "process", "processes") + " killed" : "never"],
        ]} />
      )}
    </Answer>
  );
}
