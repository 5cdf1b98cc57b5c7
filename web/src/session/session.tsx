import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, useContext, useEffect, useMemo, type ReactNode } from "react";
import { signedOut } from "../api/client";
import { companyKey, sessionQuery } from "../api/queries";
import type { Company, Permission, Session } from "../api/types";
import { Lost } from "../ui/lost";
import { SignIn } from "./sign-in";

interface Visit extends Session {
  company: Company;
  may: (permission: Permission) => boolean;
  environmentName: (id: string | null | undefined) => string;
  agentName: (id: string | null | undefined) => string;
  chooseCompany: (id: string) => void;
}

const SessionContext = createContext<Visit | null>(null);

export function useSession(): Visit {
  const visit = useContext(SessionContext);
  if (!visit) throw new Error("useSession is used outside of SessionProvider");
  return visit;
}

// Who is looking, in which company, and what the names behind ids are. Asks for a key where one is needed.
export function SessionProvider({ children }: { children: ReactNode }) {
  const queries = useQueryClient();
  const session = useQuery(sessionQuery());
  useEffect(() => {
    const look = () => void queries.invalidateQueries({ queryKey: ["session"] });
    window.addEventListener(signedOut, look);
    return () => window.removeEventListener(signedOut, look);
  }, [queries]);
  const visit = useMemo<Visit | null>(() => {
    const seen = session.data;
    if (!seen?.company) return null;
    const environments = new Map(seen.environments.map((each) => [each.id, each.name]));
    const agents = new Map(seen.agents.map((each) => [each.id, each.name]));
    const nameIn = (names: Map<string, string>, id: string | null | undefined) =>
      id ? (names.get(id) ?? `deleted (${id.slice(-8)})`) : "none";
    return {
      ...seen,
      company: seen.company,
      may: (permission) => seen.permissions.includes(permission),
      environmentName: (id) => nameIn(environments, id),
      agentName: (id) => nameIn(agents, id),
      chooseCompany: (id) => {
        localStorage.setItem(companyKey, id);
        queries.clear();
        void queries.invalidateQueries();
        location.assign("/");
      },
    };
  }, [session.data, queries]);

  if (!session.data) return session.failureCount > 0 ? <Lost /> : null;
  if (session.data.kind === "nobody") return <SignIn />;
  if (!visit) return <SignIn problem="This key belongs to no company that still exists." />;
  return <SessionContext value={visit}>{children}</SessionContext>;
}
