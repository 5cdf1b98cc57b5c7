import { Late, late } from "../late";
import type { DialogProps } from "./dialog-frame";

const DialogFrame = late((rest) => rest.DialogFrame);

export function Dialog({ open, ...rest }: DialogProps & { open: boolean }) {
  return open ? <Late><DialogFrame {...rest} /></Late> : null;
}
