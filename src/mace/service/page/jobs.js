/* Long questions: follow a job until it ends. */

import * as api from "./api.js";

const ENDED = new Set(["done", "failed", "cancelled"]);
const FIRST = 300;
const LONGEST = 3000;

export const isEnded = (job) => ENDED.has(job.state);

/** Tell `hear` about a job until it has ended; waits a little longer each time. Returns the ended job. */
export async function follow(job, hear) {
  let now = job;
  for (let pause = FIRST; !isEnded(now); pause = Math.min(LONGEST, pause * 1.3)) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    now = await api.readJob(job.id);
    if (hear(now) === false) return now;
  }
  return now;
}
