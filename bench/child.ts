import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** A child process that answers one question at a time. */
export interface Child<Question, Answer> {
  /** Rejects when the work fails or the process ends. */
  ask(question: Question): Promise<Answer>;
  stop(): Promise<void>;
}

type Reply<Answer> = { answer: Answer } | { failure: string };

/** Starts `script`, which must call `answerParent`, in a child process. */
export function forkChild<Question, Answer>(
  script: URL,
  { args = [], execArgv = [] }: { args?: string[]; execArgv?: string[] } = {},
): Child<Question, Answer> {
  const child = fork(fileURLToPath(script), args, { execArgv });
  const exited = once(child, "exit");
  return {
    async ask(question) {
      const { promise, resolve, reject } = Promise.withResolvers<Reply<Answer>>();
      const onExit = () => reject(new Error(`${script.pathname} ended before it answered`));
      child.once("message", (reply) => resolve(reply as Reply<Answer>)).once("exit", onExit);
      child.send({ question });
      const reply = await promise.finally(() => child.off("exit", onExit));
      if ("failure" in reply) throw new Error(reply.failure);
      return reply.answer;
    },
    async stop() {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}

/** In the child: answers the parent's questions; the process ends when the parent disconnects. */
export function answerParent(answer: (question: unknown) => Promise<unknown>): void {
  const reply = (message: Reply<unknown>) => process.send?.(message);
  process.on("message", ({ question }: { question: unknown }) => {
    answer(question).then(
      (value) => reply({ answer: value }),
      (error: unknown) => reply({ failure: error instanceof Error ? `${error.stack}` : String(error) }),
    );
  });
  process.on("disconnect", () => process.exit());
}
