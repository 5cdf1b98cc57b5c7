import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/client";
import { environmentsQuery } from "../api/queries";
import type { ProbeReport } from "../api/types";
import { useSession } from "../session/session";
import { useAction } from "../ui/use-action";

// A test of a saved environment, with a lease of its own.
export function useTest(environment: string) {
  const { company } = useSession();
  const queries = useQueryClient();
  const [report, setReport] = useState<ProbeReport>();
  const action = useAction(async () => {
    setReport(undefined);
    setReport(await api.post("/api/environments/{environment}/probe", { path: { environment } }));
    await queries.invalidateQueries(environmentsQuery(company.id));
  });
  return { ...action, report };
}
