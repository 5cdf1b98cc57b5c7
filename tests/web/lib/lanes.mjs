// Seconds that a test file takes when it runs alone on two cores. They only distribute the work: a
// wrong number makes one lane longer than another.
const seconds = {
  "access.test.mjs": 22,
  "environments.test.mjs": 11,
  "many-runs.test.mjs": 15,
  "objects.test.mjs": 18,
  "plugins.test.mjs": 7,
  "roles.test.mjs": 4,
  "runner.test.mjs": 2,
  "runs.test.mjs": 14,
  "safety.test.mjs": 11,
  "sandboxes.test.mjs": 17,
  "start.test.mjs": 4,
  "walls.test.mjs": 4,
};
const unknownSeconds = 5;

const secondsOf = (file) => seconds[file] ?? unknownSeconds;

// The files of lane "I/N": longest first, each to the lane with the least work. Every file is in
// one lane.
export function filesOfLane(files, lane) {
  const [, which, count] = /^([1-9]\d?)\/([1-9]\d?)$/.exec(lane) ?? [];
  if (!which || Number(which) > Number(count)) throw new Error(`--lane ${lane}: write I/N, as in 1/2`);
  const lanes = Array.from({ length: Number(count) }, () => ({ files: [], seconds: 0 }));
  const order = [...files].sort((one, other) => secondsOf(other) - secondsOf(one) || (one < other ? -1 : 1));
  for (const file of order) {
    const least = lanes.reduce((best, each) => (each.seconds < best.seconds ? each : best));
    least.files.push(file);
    least.seconds += secondsOf(file);
  }
  return lanes[Number(which) - 1].files.sort();
}
