import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError, isLost } from "./api/error";
import { environmentsQuery, leasesQuery, sessionQuery } from "./api/queries";
import { router } from "./router";
import { SessionProvider } from "./session/session";
import "./style.css";
import { applyTheme } from "./ui/theme";

applyTheme();

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // The stream says when something has changed; nothing grows old by itself.
      staleTime: 60_000,
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
      retry: (failures, error) => isLost(error) || (failures < 2 && !(error instanceof ApiError)),
      retryDelay: 1000,
    },
  },
});

// The answers that first/ask.ts has asked for are there by now or come at once: what is drawn once, with everything in it,
// is on the screen sooner than what is drawn empty first. Who does not answer soon is not waited for.
const patienceMs = 150;

async function firstView(): Promise<void> {
  const [session] = await Promise.all([queries.fetchQuery(sessionQuery()), router.load()]);
  if (!session.company) return;
  if (location.pathname === "/environments") await queries.prefetchQuery(environmentsQuery(session.company.id));
  if (location.pathname === "/leases") await queries.prefetchQuery(leasesQuery(session.company.id, "held"));
}

function draw(): void {
  createRoot(document.getElementById("root")!).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <SessionProvider>
          <RouterProvider router={router} />
        </SessionProvider>
      </QueryClientProvider>
    </StrictMode>,
  );
}

const patience = new Promise<void>((end) => window.setTimeout(end, patienceMs));
void Promise.race([firstView().catch(() => undefined), patience]).then(draw);
