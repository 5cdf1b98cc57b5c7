// What a page costs, in numbers that other programs on the machine change little: CPU time of the
// page's own thread, and the longest frame as a share of the observed time.

// Counts the CPU seconds of the page's main thread. They compare a page with itself: their size
// depends on the machine.
export async function cpuOf(visit) {
  const session = await visit.context.newCDPSession(visit.page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const total = async () => (await session.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration").value;
  return async (work) => {
    const before = await total();
    const result = await work();
    return { seconds: (await total()) - before, result };
  };
}

// From the next navigation on the page records when it draws a frame.
export async function watchFrames(page) {
  await page.addInitScript(() => {
    let last = performance.now();
    window.longestFrameMs = 0;
    const drawn = () => {
      const now = performance.now();
      window.longestFrameMs = Math.max(window.longestFrameMs, now - last);
      last = now;
      requestAnimationFrame(drawn);
    };
    requestAnimationFrame(drawn);
  });
}

// The longest frame since the navigation, as a share of the time since then.
export async function frozenShare(page) {
  return page.evaluate(() => window.longestFrameMs / performance.now());
}

// Scrolls through nine tenths of a box in steps, and waits for each to be drawn. At its end a list
// requests more.
export async function scrollThrough(page, selector, steps) {
  await page.evaluate(async ({ selector, steps }) => {
    const box = document.querySelector(selector);
    for (let at = 0; at <= steps; at += 1) {
      box.scrollTop = (0.9 * box.scrollHeight * at) / steps;
      await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
    }
  }, { selector, steps });
}
