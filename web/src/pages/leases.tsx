import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { leasesQuery, type WhichLeases } from "../api/queries";
import { LeaseTable } from "../leases/lease-table";
import { useSession } from "../session/session";
import { Answer } from "../ui/loading";
import { Page } from "../ui/page";

export function LeasesPage() {
  const { company } = useSession();
  const [shown, setShown] = useState<WhichLeases>("held");
  const query = useQuery(leasesQuery(company.id, shown));
  return (
    <Page title="Leases" about="What is held, by whom, until when, and what Berth does about it next.">
      <fieldset className="flex flex-wrap gap-4 text-sm">
        <legend className="sr-only">Which leases</legend>
        {([["held", "Held now"], ["parked", "Waiting for an operator"], ["all", "Also those that are over"]] as const).map(([value, name]) => (
          <label key={value} className="flex items-center gap-1.5">
            <input type="radio" name="shown" checked={shown === value} onChange={() => setShown(value)} />{name}
          </label>
        ))}
      </fieldset>
      <Answer query={query}>
        {(leases) => <LeaseTable leases={leases} />}
      </Answer>
    </Page>
  );
}
