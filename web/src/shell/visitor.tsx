import type { ButtonHTMLAttributes, Ref } from "react";
import { words } from "../format";
import { useSession } from "../session/session";

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  ref?: Ref<HTMLButtonElement>;
}

// Who is looking, as the button that opens their menu.
export function Visitor(props: Props) {
  const { company, role, version } = useSession();
  return (
    <button type="button" className="flex w-full flex-col rounded-md px-2.5 py-1.5 text-left text-sm hover:bg-hover" {...props}>
      <span className="truncate font-medium">{company.name}</span>
      <span className="text-xs text-muted">{words(role)} · {version}</span>
    </button>
  );
}
