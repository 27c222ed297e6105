import type { AccessKey } from "../../src/model/access-key.ts";
import { accessKeyOf, newSecret } from "../../src/keys/secrets.ts";
import type { TaskStore } from "../../src/stores/store.ts";

/** Adds a key. Returns its secret and the header that has it. */
export async function addKey(
  { keys }: Pick<TaskStore, "keys">,
  name: string,
  { admin = false, limits = {} }: Partial<Pick<AccessKey, "admin" | "limits">> = {},
) {
  const secret = newSecret();
  await keys.add(accessKeyOf(secret, { name, admin, limits }, new Date()));
  return { secret, headers: { authorization: `Bearer ${secret}` } };
}
