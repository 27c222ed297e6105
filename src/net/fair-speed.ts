/** What a process wants of a limit that processes share. */
export interface SpeedDemand {
  /** Tasks that wait for more. */
  waiting: number;
  /** Other tasks that received something. */
  others: number;
  /** Bytes per second that these received. */
  bps: number;
}

/** What tasks that do not wait may have beyond what they received: a share of that, and a share of the limit. */
const growth = 0.05;
const reserve = 0.01;

/**
 * Returns how many bytes per second a process may have of a limit. Every task may have as many as any other one; what tasks that do not
 * wait leave of that is for those that do.
 */
export function fairSpeed(limitBps: number, own: SpeedDemand, others: readonly SpeedDemand[]): number {
  const groups = [own, ...others].flatMap((demand) => groupsOf(demand, limitBps));
  const total = groups.reduce((sum, { tasks }) => sum + tasks, 0);
  let [leftBps, left, speed] = [limitBps, total, 0];
  for (const { demand, tasks, mostBps } of groups.toSorted((a, b) => a.mostBps / a.tasks - b.mostBps / b.tasks)) {
    const share = Math.min(mostBps, (leftBps * tasks) / left);
    if (demand === own) speed += share;
    leftBps -= share;
    left -= tasks;
  }
  // What nobody wants now.
  return speed + (leftBps * (own.waiting + own.others)) / total;
}

function groupsOf(demand: SpeedDemand, limitBps: number) {
  const { waiting, others, bps } = demand;
  const mostBps = Math.min(limitBps, bps * (1 + growth) + limitBps * reserve);
  const groups = [
    { demand, tasks: waiting, mostBps: limitBps },
    { demand, tasks: others, mostBps },
  ];
  return groups.filter(({ tasks }) => tasks > 0);
}
