import type { FastifyInstance, FastifyRequest, HookHandlerDoneFunction } from "fastify";
import { type InputFault, inputError, type ServiceError } from "../../model/errors.ts";
import { TaskOptions } from "../../model/task.ts";
import { findLikely } from "../../model/schema.ts";

const optionNames = Object.keys(TaskOptions.properties);

interface RouteSchema {
  tags?: string[];
  querystring?: { properties: object };
  body?: { properties: object };
}

/**
 * Makes the routes of tasks and pages that are registered after it refuse misspelt names (ServiceError `invalid_request`): a query parameter or
 * a member of a body that has no meaning, but nearly the name of one that has, or of an option of a task. All others do no harm.
 */
export function refuseMistakenNames(app: FastifyInstance): void {
  app.addHook("onRoute", (route) => {
    const { tags = [], querystring, body } = (route.schema ?? {}) as RouteSchema;
    if (!tags.includes("tasks") && !tags.includes("info")) return;
    const parameters = Object.keys(querystring?.properties ?? {});
    const members = body && Object.keys(body.properties);
    const refuse = (request: FastifyRequest, _reply: unknown, done: HookHandlerDoneFunction): void => {
      const mistakes = findMistakes(request.query as object, parameters, "query");
      done(mistakes ?? (members && findMistakes(request.body as object, members, "body")));
    };
    route.preHandler = [...[route.preHandler ?? []].flat(), refuse];
  });
}

/** Returns the names of members or parameters that are compared with others: a body may have thousands. */
export const comparedNames = (values: object): string[] => Object.keys(values).slice(0, 100);

function findMistakes(values: object, own: readonly string[], part: "body" | "query"): ServiceError | undefined {
  const faults: InputFault[] = [];
  for (const name of comparedNames(values)) {
    if (own.includes(name) || faults.length === 20) continue;
    const likely = likelyPointer(name, own, part);
    if (likely !== undefined) {
      const pointer = `/${name.slice(0, 100).replaceAll("~", "~0").replaceAll("/", "~1")}`;
      faults.push({ pointer, detail: `has no meaning; did you mean ${likely}?` });
    }
  }
  return faults.length === 0 ? undefined : inputError(part, ...faults);
}

function likelyPointer(name: string, own: readonly string[], part: "body" | "query"): string | undefined {
  const ownName = findLikely(name, own);
  if (ownName !== undefined) return `/${ownName}`;
  const option = findLikely(name, optionNames);
  if (option === undefined) return undefined;
  return part === "body" ? `/options/${option}` : `/options/${option} in the body of POST /tasks/`;
}
