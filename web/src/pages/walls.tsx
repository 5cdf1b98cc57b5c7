import { useQuery } from "@tanstack/react-query";
import { wallsQuery } from "../api/queries";
import type { Wall } from "../api/types";
import { count } from "../format";
import { useSession } from "../session/session";
import { StateBadge } from "../ui/badge";
import { Empty } from "../ui/empty";
import { Answer } from "../ui/loading";
import { Page } from "../ui/page";

const attackers: Record<Wall["against"], string> = {
  network: "someone on the network",
  local_user: "another user of this machine",
  agent: "an agent in a sandbox",
  company: "another company",
  plugin: "a plugin",
};

const edges: Record<Wall["state"], string> = {
  stands: "border-l-good",
  weak: "border-l-warn",
  open: "border-l-danger",
};

// What does not stand comes first.
const ranks: Record<Wall["state"], number> = { open: 0, weak: 1, stands: 2 };

export function WallsPage() {
  const { may } = useSession();
  return (
    <Page title="Walls" about="What keeps attackers out on this machine, and whether it does.">
      {may("instance_admin") ? <Walls /> : <Empty title="Only an instance administrator sees the walls">They tell what an attacker could use.</Empty>}
    </Page>
  );
}

function Walls() {
  const query = useQuery(wallsQuery());
  return (
    <Answer query={query}>{(walls) => (
      <>
        <p role="status" className="text-sm">{summary(walls)}</p>
        <ul className="grid gap-3 md:grid-cols-2">
          {[...walls].sort((a, b) => ranks[a.state] - ranks[b.state]).map((wall) => <WallCard key={wall.key} wall={wall} />)}
        </ul>
      </>
    )}</Answer>
  );
}

function summary(walls: Wall[]): string {
  const open = walls.filter((each) => each.state === "open").length;
  const weak = walls.filter((each) => each.state === "weak").length;
  if (open + weak === 0) return `All ${count(walls.length, "wall")} stand.`;
  return `${open} open, ${weak} weak, ${walls.length - open - weak} of ${count(walls.length, "wall")} stand.`;
}

function WallCard({ wall }: { wall: Wall }) {
  return (
    <li className={`rounded-lg border border-l-4 border-line bg-raised p-4 text-sm ${edges[wall.state]}`}>
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h2 className="font-semibold">{wall.title}</h2>
        <StateBadge state={wall.state} />
      </div>
      <p className="mt-0.5 text-xs text-muted">Against {attackers[wall.against]}</p>
      <p className="mt-2 break-words">{wall.reason}</p>
      {wall.remedy && <p className="mt-2 break-words"><span className="font-medium">Remedy:</span> {wall.remedy}</p>}
    </li>
  );
}
