import { workerData } from "node:worker_threads";

// Runs in a thread of a worker process, which may be busy in a loop when the service is killed: ends the
// process once its parent is another one.
setInterval(() => {
  if (process.ppid !== workerData.parentPid) process.kill(process.pid, "SIGKILL");
}, 500);
