import type { ButtonHTMLAttributes } from "react";

type Tone = "primary" | "plain" | "danger" | "quiet";

const tones: Record<Tone, string> = {
  primary: "bg-accent text-on-accent hover:bg-accent-strong border-transparent",
  plain: "bg-surface hover:bg-hover border-line",
  danger: "bg-danger text-on-danger hover:bg-danger-strong border-transparent",
  quiet: "border-transparent hover:bg-hover",
};

export const buttonClass = (tone: Tone = "plain") =>
  `inline-flex h-8 items-center justify-center gap-1.5 whitespace-nowrap rounded-md border px-3 text-sm font-medium ` +
  `disabled:cursor-not-allowed disabled:opacity-50 ${tones[tone]}`;

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  tone?: Tone;
  busy?: boolean;
}

export function Button({ tone = "plain", busy = false, className = "", children, disabled, type = "button", ...rest }: Props) {
  return (
    <button type={type} className={`${buttonClass(tone)} ${className}`} disabled={disabled || busy} aria-busy={busy} {...rest}>
      {busy && <span className="spinner" aria-hidden="true" />}
      {children}
    </button>
  );
}
