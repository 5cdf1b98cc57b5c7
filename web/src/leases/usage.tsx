import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";
import { bytes, count, duration } from "../format";
import { Facts } from "../ui/page";
import { Answer } from "../ui/loading";

const uncounted = "not counted here";

// Without control groups nobody knows the most that a place has had, nor what was killed for it; a peak of 0 says so.
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
          ["Memory now", bytes(usage.memoryBytes)],
          ["Most memory", usage.memoryBytesPeak ? bytes(usage.memoryBytesPeak) : uncounted],
          ["Processes", count(usage.processes, "process", "processes")],
          ["Disk", usage.readBytes == null ? uncounted
            : `${bytes(usage.readBytes)} read, ${bytes(usage.writtenBytes ?? 0)} written`],
          ["Out of memory", usage.oomKills ? count(usage.oomKills, "process", "processes") + " killed" : usage.memoryBytesPeak ? "never" : uncounted],
        ]} />
      )}
    </Answer>
  );
}
