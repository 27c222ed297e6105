import { expect, it } from "vitest";
import { openKeyRing } from "../../../src/keys/key-ring.ts";
import { createMemoryStore } from "../../../src/stores/memory.ts";
import { createTaskEvents } from "../../../src/task-events.ts";
import { addKey } from "../../http/keys.ts";
import type { OpenTab } from "../browser.ts";
import { inspect } from "./inspect.ts";
import { openApp } from "./open-app.ts";
import { addDone } from "./stored-tasks.ts";

export function signingIn(openTab: OpenTab): void {
  it("asks for a key where the service needs one, and shows the tasks of its owner alone", async () => {
    const store = createMemoryStore({ events: createTaskEvents() });
    const { secret } = await addKey(store, "anna");
    const keys = await openKeyRing({ keys: store.keys });
    const app = await openApp({ store, keys });
    await addDone(app, { title: "A film of nobody" });
    const tab = await openTab(app.url);
    tab.expectFailures(/\/tasks\/events|\/session/);
    const { page } = tab;
    const field = page.getByLabel("Your key for this service");
    await field.fill("unreel_wrong");
    await field.press("Enter");
    await page.getByText("This key is not valid.").waitFor();
    await inspect(page, "sign-in");
    await field.fill(secret);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Nothing here yet.").waitFor();
    expect(await page.context().cookies()).toMatchObject([{ httpOnly: true, sameSite: "Strict" }]);
    keys.close();
  });
}
