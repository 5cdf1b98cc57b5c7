// Numbers and times as a person reads them.
const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

function tenths(value: number): string {
  return value >= 10 ? String(Math.round(value)) : String(Math.round(value * 10) / 10);
}

// "712 ms", "4.2 s", "5 min", "3 min 20 s", "2 h 5 min", "4 d".
export function duration(ms: number): string {
  if (ms < second) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < minute) return `${tenths(ms / second)} s`;
  const two = (big: number, bigUnit: string, small: number, smallUnit: string) => {
    const whole = Math.floor(ms / big);
    const rest = Math.round((ms - whole * big) / small);
    return rest ? `${whole} ${bigUnit} ${rest} ${smallUnit}` : `${whole} ${bigUnit}`;
  };
  if (ms < hour) return two(minute, "min", second, "s");
  if (ms < day) return two(hour, "h", minute, "min");
  return two(day, "d", hour, "h");
}

// The other way round: "5 min", "90s", "1 h 30 min"; a bare number is milliseconds. Nothing where it is no time.
export function parseDuration(text: string): number | undefined {
  const trimmed = text.trim();
  if (/^\d+$/.test(trimmed)) return Number(trimmed);
  const units: Record<string, number> = { ms: 1, s: second, sec: second, m: minute, min: minute, h: hour, d: day };
  if (!/^(\d+(\.\d+)?\s*(ms|s|sec|m|min|h|d)\s*)+$/.test(trimmed)) return undefined;
  let sum = 0;
  for (const [, number, unit] of trimmed.matchAll(/(\d+(?:\.\d+)?)\s*(ms|sec|s|min|m|h|d)/g)) {
    sum += Number(number) * (units[unit ?? ""] ?? 0);
  }
  return Math.round(sum);
}

export function bytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    unit += 1;
  }
  return unit === 0 ? `${count} B` : `${tenths(value)} ${units[unit]}`;
}

export function count(value: number, one: string, many = `${one}s`): string {
  return `${value.toLocaleString("en")} ${value === 1 ? one : many}`;
}

// "just now", "3 min ago", "in 20 min"; older than a day as a date.
export function ago(iso: string, now: number): string {
  const past = now - Date.parse(iso);
  const size = Math.abs(past);
  if (size >= day) return moment(iso);
  if (size < 5 * second) return past >= 0 ? "just now" : "now";
  const coarse = size < minute ? `${Math.floor(size / second)} s` : size < hour ? `${Math.floor(size / minute)} min` : `${Math.floor(size / hour)} h`;
  return past >= 0 ? `${coarse} ago` : `in ${coarse}`;
}

export function moment(iso: string): string {
  const at = new Date(iso);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

export function shortId(id: string): string {
  return id.slice(-8);
}

// "retain_on_failure" is "retain on failure".
export function words(name: string): string {
  return name.replaceAll("_", " ").trim();
}

// "memoryMb" is "Memory mb": the start of a label for who has none.
export function label(key: string): string {
  const spaced = key.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replaceAll("_", " ").toLowerCase();
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

// A command as one would type it; what was given to a shell is shown as it was given.
export function commandText(argv: readonly string[]): string {
  if (argv.length === 3 && argv[0] === "sh" && argv[1] === "-c") return argv[2] ?? "";
  return argv.map((part) => (/^[\w@%+=:,./-]+$/.test(part) ? part : `'${part.replaceAll("'", `'\\''`)}'`)).join(" ");
}
