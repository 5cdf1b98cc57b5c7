// Tests by name, one line each: ok, FAIL or skip, as tests/e2e/run prints them.
const tests = [];

export class Skip extends Error {}

export function test(name, body) {
  tests.push({ name: `web.${name}`, body });
}

function chosen(patterns) {
  return tests.filter(({ name }) => patterns.length === 0 || patterns.some((each) => name.includes(each)));
}

// Whether there is a test.
export function listAll(patterns) {
  const listed = chosen(patterns);
  for (const { name } of listed) console.log(name);
  return listed.length > 0;
}

// Whether there was a test, and none failed.
export async function runAll(patterns) {
  const wanted = chosen(patterns);
  if (wanted.length === 0) {
    console.error(`there is no test here${patterns.length ? ` whose name contains ${patterns.join(" or ")}` : ""}`);
    return false;
  }
  let failures = 0;
  for (const { name, body } of wanted) {
    const began = performance.now();
    const say = (verdict, more = "") => console.log(`${verdict.padEnd(5)} ${name}  ${((performance.now() - began) / 1000).toFixed(1)} s${more}`);
    try {
      await body();
      say("ok");
    } catch (error) {
      if (error instanceof Skip) {
        say("skip", `: ${error.message}`);
      } else {
        failures += 1;
        say("FAIL", `\n${error.stack ?? error}`);
      }
    }
  }
  return failures === 0;
}
