import { execFileSync } from "node:child_process";
import type { Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { openKeyRing } from "../../../src/keys/key-ring.ts";
import { createMemoryStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { newTask } from "../../../src/feed/task-changes.ts";
import { createTaskEvents } from "../../../src/feed/task-events.ts";
import { addKey } from "../../http/keys.ts";
import type { OpenTab } from "../browser.ts";
import { inspect, inspectLayout } from "./inspect.ts";
import { openApp } from "./open-app.ts";
import { addDone } from "./stored-tasks.ts";

const secretLabel = "Your key for this service";

/** An app with anna's key, named after her, and a task of hers. */
async function openLockedApp(name = "anna") {
  const store = createMemoryStore({ events: createTaskEvents() });
  const { secret } = await addKey(store, name);
  const keys = await openKeyRing({ keys: store.keys });
  onTestFinished(() => keys.close());
  const app = await openApp({ store, keys });
  await addDone(app, { title: "A film of nobody" });
  await store.create(newTask("https://video.example.com/hers", {}, new Date(), name));
  return { app, secret };
}

async function signIn(page: Page, secret: string): Promise<void> {
  await page.getByLabel(secretLabel).fill(secret);
  await page.keyboard.press("Enter");
  await page.getByRole("article").waitFor();
}

/** Expects the form for a key, and nothing of any task. */
async function expectSignedOut(page: Page): Promise<void> {
  await page.getByLabel(secretLabel).waitFor();
  expect(await page.getByRole("button", { name: "Sign out" }).count()).toBe(0);
  expect(await page.content()).not.toMatch(/video\.example\.com|Downloads|anna/);
}

/** Returns the arguments that a shell gives to curl. */
function argumentsOf(command: string, env: Record<string, string>): string[] {
  const script = `curl() { printf '%s\\n' "$@"; }; ${command}`;
  return execFileSync("sh", ["-c", script], { env, encoding: "utf8" }).trimEnd().split("\n");
}

const refused = /status of 401 .*\/(?:tasks\/|session)/;

export function signingIn(openTab: OpenTab): void {
  it("asks for a key where the service needs one, and shows the tasks of its owner alone", async () => {
    const { app, secret } = await openLockedApp();
    const tab = await openTab(app.url);
    tab.expectFailures(refused);
    const { page } = tab;
    const field = page.getByLabel(secretLabel);
    await field.fill("unreel_wrong");
    await field.press("Enter");
    await page.getByText("This key is not valid.").waitFor();
    await inspect(page, "sign-in");
    await signIn(page, secret);
    expect(await page.getByRole("article").count()).toBe(1);
    expect(await page.content()).not.toContain("A film of nobody");
    const cookies = await page.context().cookies();
    expect(cookies.map(({ name, httpOnly, sameSite }) => [name, httpOnly, sameSite])).toEqual([
      ["unreel_session", true, "Strict"],
      ["unreel_signed_in", false, "Strict"],
    ]);
  });

  it("signs out by the keyboard alone, and leaves nothing of the tasks", async () => {
    const { app, secret } = await openLockedApp();
    const tab = await openTab(app.url, { path: "?url=" });
    tab.expectFailures(refused);
    const { page } = tab;
    await signIn(page, secret);
    await page.getByText("anna", { exact: true }).waitFor();
    await inspect(page, "signed in");
    await page.reload();
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    await page.locator("h1").click();
    await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Sign out");
    await page.keyboard.press("Enter");
    await expectSignedOut(page);
    expect(page.url()).toBe(app.url);
    expect(await page.context().cookies()).toEqual([]);
  });

  it("asks for a key in other tabs of the browser at their next request", async () => {
    const { app, secret } = await openLockedApp();
    const tab = await openTab(app.url);
    tab.expectFailures(refused);
    await signIn(tab.page, secret);
    const other = await tab.page.context().newPage();
    await other.goto(app.url);
    const cancel = other.getByRole("article").getByRole("button", { name: "Cancel" });
    await cancel.waitFor();
    await tab.page.getByRole("button", { name: "Sign out" }).click();
    await expectSignedOut(tab.page);
    await cancel.click();
    await expectSignedOut(other);
  });

  it("shows the tasks in a tab that asks for a key once somebody has signed in in another one", async () => {
    const { app, secret } = await openLockedApp();
    const tab = await openTab(app.url);
    tab.expectFailures(refused);
    await tab.page.getByLabel(secretLabel).waitFor();
    const other = await tab.page.context().newPage();
    await other.goto(app.url);
    await signIn(other, secret);
    await other.close();
    await tab.page.evaluate('document.dispatchEvent(new Event("visibilitychange"))');
    await tab.page.getByRole("article").waitFor();
  });

  it("copies a curl command that has the key of the variable UNREEL_KEY", async () => {
    const { app, secret } = await openLockedApp();
    const title = "A film of hers";
    const tab = await openTab(app.url);
    tab.expectFailures(refused);
    const { page } = tab;
    await signIn(page, secret);
    tab.expectShifts();
    const { id } = await addDone(app, { title, owner: "anna" });
    const row = page.getByRole("article", { name: title });
    await row.getByText("More", { exact: true }).click();
    await row.getByRole("button", { name: "Copy curl command" }).click();
    const field = row.getByRole("textbox", { name: "the variable UNREEL_KEY must hold your key" });
    await inspect(page, "curl command with a key");
    const command = await field.inputValue();
    expect(command).toContain('-H "Authorization: Bearer $UNREEL_KEY"');
    const url = `${app.url}tasks/${id}/file`;
    const authorization = `Bearer ${secret}`;
    expect(argumentsOf(command, { UNREEL_KEY: secret })).toEqual([
      "-fOJ",
      "-H",
      `Authorization: ${authorization}`,
      url,
    ]);
    expect((await fetch(url, { headers: { authorization } })).status).toBe(200);
  });

  it("shows the name of a key in one line, whatever it is", async () => {
    const { app, secret } = await openLockedApp(`${"w".repeat(60)}-end`);
    const tab = await openTab(app.url);
    tab.expectFailures(refused);
    await signIn(tab.page, secret);
    await tab.page.getByRole("button", { name: "Sign out" }).waitFor();
    await inspectLayout(tab.page, "signed in with a long name");
  });

  it("says why it could not sign out", async () => {
    const { app, secret } = await openLockedApp();
    const tab = await openTab(app.url);
    tab.expectFailures(/tasks\/events|\/session/);
    await signIn(tab.page, secret);
    await tab.page.route("**/session", (route) => route.abort());
    // The message comes above them, later than browsers count it as the answer to the click if the machine is busy.
    tab.expectShifts("<main ");
    await tab.page.getByRole("button", { name: "Sign out" }).click();
    await tab.page.getByRole("alert").getByText("The service does not respond.").waitFor();
    await tab.page.getByRole("article").waitFor();
  });

  it("has nothing to sign out of while there are no keys, and asks for nothing more", async () => {
    const app = await openApp();
    const { page } = await openTab(app.url);
    const nothing = page.getByText("Nothing here yet.");
    await nothing.waitFor();
    const paths: string[] = [];
    page.on("request", (request) => void paths.push(new URL(request.url()).pathname));
    await page.reload({ waitUntil: "load" });
    await nothing.waitFor();
    expect(paths.filter((path) => !path.startsWith("/assets/"))).toEqual(["/", "/tasks/events", "/tasks/"]);
    expect(await page.locator(".session").count()).toBe(0);
  });
}
