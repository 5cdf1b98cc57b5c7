import * as Radix from "@radix-ui/react-dialog";
import type { ReactNode } from "react";

export interface DialogProps {
  onClose: () => void;
  title: string;
  about?: ReactNode;
  children: ReactNode;
}

// Drawn by Radix: focus stays inside, Escape closes it, and whoever had the focus gets it back.
export function DialogFrame({ onClose, title, about, children }: DialogProps) {
  return (
    <Radix.Root open onOpenChange={(next) => !next && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-black/50" />
        <Radix.Content className="fixed inset-x-3 top-[8dvh] z-50 mx-auto max-h-[84dvh] max-w-lg overflow-auto rounded-lg border border-line bg-raised p-5 shadow-xl">
          <Radix.Title className="text-base font-semibold">{title}</Radix.Title>
          <Radix.Description asChild>
            <div className="mt-1 mb-4 text-sm text-muted">{about}</div>
          </Radix.Description>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
