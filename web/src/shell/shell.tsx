import { useIsFetching } from "@tanstack/react-query";
import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { Late, late } from "../late";
import { LiveProvider, useLive } from "../live/live";
import { useSession } from "../session/session";
import { Visitor } from "./visitor";

const UserMenu = late((rest) => rest.UserMenu);
const quietMs = 200;

const places = [
  ["/", "Start"],
  ["/environments", "Environments"],
  ["/runs", "Runs"],
  ["/leases", "Leases"],
  ["/templates", "Templates"],
  ["/agents", "Agents"],
  ["/secrets", "Secrets"],
  ["/plugins", "Plugins"],
  ["/activity", "Activity"],
  ["/settings", "Settings"],
] as const;

const operatorsOnly: string[] = ["/leases", "/templates", "/secrets"];

export function Shell() {
  const { company } = useSession();
  return (
    <LiveProvider company={company.id}>
      <Frame />
    </LiveProvider>
  );
}

function Frame() {
  const [open, setOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const { pathname } = useLocation();
  const { may } = useSession();
  useEffect(() => setOpen(false), [pathname]);
  const shown = places.filter(([to]) => !operatorsOnly.includes(to) || may("company_operate"));
  return (
    <div className="flex min-h-dvh flex-col md:grid md:grid-cols-[12rem_1fr]">
      <a href="#main" className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:bg-raised focus:p-2"
        onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>Skip to the content</a>
      <header className="flex flex-col border-line bg-raised max-md:border-b md:sticky md:top-0 md:h-dvh md:border-r">
        <div className="flex items-center justify-between px-4 py-3">
          <Link to="/" className="flex items-center gap-2 font-semibold"><Mark />Berth</Link>
          <button type="button" className="rounded border border-line px-2 py-1 text-sm md:hidden" aria-expanded={open} aria-controls="places"
            onClick={() => setOpen(!open)}>Menu</button>
        </div>
        <nav id="places" aria-label="Pages" className={`${open ? "" : "max-md:hidden"} flex-1 px-2 pb-2`}>
          <ul className="flex flex-col gap-0.5">
            {shown.map(([to, name]) => (
              <li key={to}>
                <Link to={to} activeOptions={{ exact: to === "/" }}
                  className="block rounded-md px-2.5 py-1.5 text-sm hover:bg-hover aria-[current=page]:bg-accent/12 aria-[current=page]:font-medium aria-[current=page]:text-accent-text">
                  {name}
                </Link>
              </li>
            ))}
          </ul>
        </nav>
        <div className={`${open ? "" : "max-md:hidden"} border-t border-line p-2`}><Account /></div>
      </header>
      <div className="min-w-0">
        <ConnectionBar />
        <main id="main" ref={main} tabIndex={-1} className="outline-none"><Outlet /></main>
      </div>
    </div>
  );
}

// The menu comes with the rest of the page, once the first view has what it needs; who clicks earlier gets it open.
function Account() {
  const asking = useIsFetching() > 0;
  const [wanted, setWanted] = useState<"later" | "closed" | "open">("later");
  useEffect(() => {
    if (asking || wanted !== "later") return;
    const timer = window.setTimeout(() => setWanted("closed"), quietMs);
    return () => window.clearTimeout(timer);
  }, [asking, wanted]);
  const open = () => setWanted("open");
  const button = <Visitor onPointerDown={open} onClick={open} />;
  if (wanted === "later") return button;
  return <Late until={button}><UserMenu defaultOpen={wanted === "open"} /></Late>;
}

function Mark() {
  return (
    <svg viewBox="0 0 16 16" width="18" height="18" aria-hidden="true">
      <rect width="16" height="16" rx="3" fill="var(--accent)" />
      <path d="M4 11.5h8M5.5 11.5V5h5v6.5" stroke="white" strokeWidth="1.4" fill="none" />
    </svg>
  );
}

function ConnectionBar() {
  const { connection } = useLive();
  if (connection !== "lost") return null;
  return (
    <p role="status" className="bg-warn/20 px-4 py-1.5 text-sm text-warn-text">
      The server is lost. What you see may be old; the page goes on by itself when the server is back.
    </p>
  );
}
