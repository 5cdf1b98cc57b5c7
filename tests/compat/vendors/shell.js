// How providers with a single command line build it from a command's arguments.
export const quoted = (word) => `'${word.replaceAll("'", `'"'"'`)}'`;

export function scriptOf({ command, args = [], env = {}, cwd }, { stdinFile } = {}) {
  const bad = Object.keys(env).find((name) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
  if (bad) throw new Error(`${bad} is not the name of a variable`);
  const words = ["env", ...Object.entries(env).map(([name, value]) => `${name}=${value}`), command, ...args];
  return [
    'if [ -f "$HOME/.profile" ]; then . "$HOME/.profile" >/dev/null 2>&1 || :; fi',
    ...(cwd ? [`cd ${quoted(cwd)}`] : []),
    `exec ${words.map(quoted).join(" ")}${stdinFile ? ` <${quoted(stdinFile)}` : ""}`,
  ].join(" && ");
}
