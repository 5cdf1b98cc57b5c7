import * as Menu from "@radix-ui/react-dropdown-menu";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/client";
import { useSession } from "../session/session";
import { Visitor } from "./visitor";
import { chooseTheme, chosenTheme, type Theme } from "../ui/theme";

const item = "cursor-default rounded px-2 py-1.5 text-sm outline-none data-[highlighted]:bg-hover";

export function UserMenu({ defaultOpen }: { defaultOpen: boolean }) {
  const { company, companies, chooseCompany, deploymentMode } = useSession();
  const queries = useQueryClient();
  const [theme, setTheme] = useState(chosenTheme());
  const signOut = async () => {
    await api.delete("/api/session", {});
    queries.clear();
    location.assign("/");
  };
  return (
    <Menu.Root modal={false} defaultOpen={defaultOpen}>
      <Menu.Trigger asChild><Visitor /></Menu.Trigger>
      <Menu.Portal>
        <Menu.Content side="top" align="start" className="z-50 min-w-52 rounded-lg border border-line bg-raised p-1 shadow-xl">
          {companies.length > 1 && (
            <>
              <Menu.Label className="px-2 py-1 text-xs text-muted">Company</Menu.Label>
              <Menu.RadioGroup value={company.id} onValueChange={chooseCompany}>
                {companies.map((each) => (
                  <Menu.RadioItem key={each.id} value={each.id} className={`${item} data-[state=checked]:font-semibold`}>{each.name}</Menu.RadioItem>
                ))}
              </Menu.RadioGroup>
              <Menu.Separator className="my-1 h-px bg-line" />
            </>
          )}
          <Menu.Label className="px-2 py-1 text-xs text-muted">Colours</Menu.Label>
          <Menu.RadioGroup value={theme} onValueChange={(next) => { chooseTheme(next as Theme); setTheme(next as Theme); }}>
            {(["system", "light", "dark"] as const).map((each) => (
              <Menu.RadioItem key={each} value={each} className={`${item} data-[state=checked]:font-semibold`}>
                {each === "system" ? "As the system" : each === "light" ? "Light" : "Dark"}
              </Menu.RadioItem>
            ))}
          </Menu.RadioGroup>
          {deploymentMode === "authenticated" && (
            <>
              <Menu.Separator className="my-1 h-px bg-line" />
              <Menu.Item className={item} onSelect={() => void signOut()}>Sign out</Menu.Item>
            </>
          )}
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}
