import { useSignal } from "@preact/signals";
import { type ComponentChild, h } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { endSession, failureOf, readSessionName, startSession } from "./api.ts";
import { describeFailure } from "./texts.ts";

/** Whether this browser has a session: no request is needed to know that there is none. */
export function hasSession(): boolean {
  return /(?:^|; )unreel_signed_in=1(?:;|$)/.test(document.cookie);
}

/** Calls back when this tab is looked at after another one has begun a session. Returns the function that ends this. */
function onSessionElsewhere(listener: () => void): () => void {
  const hadSession = hasSession();
  const look = () => {
    if (!hadSession && hasSession()) listener();
  };
  document.addEventListener("visibilitychange", look);
  return () => document.removeEventListener("visibilitychange", look);
}

/** Whose key the session has, and a button that ends it. Its space is kept until the name is read, so that nothing moves. */
export function Session(): ComponentChild {
  const name = useSignal("");
  const failure = useSignal("");
  const attempt = async (job: () => Promise<void>): Promise<void> => {
    failure.value = "";
    const error = await failureOf(job);
    if (error !== undefined) failure.value = describeFailure(error);
  };
  useEffect(() => {
    void attempt(async () => void (name.value = await readSessionName()));
  }, []);
  const signOut = () =>
    attempt(async () => {
      await endSession();
      // Nothing of the key's stays: not in the page, its memory or its address.
      location.replace(location.pathname);
    });
  return h(
    "div",
    { class: "session" },
    name.value !== "" && [
      h("span", { key: "name", class: "muted", title: name.value }, name.value),
      h("button", { key: "out", onClick: () => void signOut() }, "Sign out"),
    ],
    h("p", { class: "failure", role: "alert" }, failure.value),
  );
}

/** Asks for a key, and loads the page again once the service has accepted it. */
export function SignIn(): ComponentChild {
  const failure = useSignal("");
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    field.current?.focus();
    return onSessionElsewhere(() => location.reload());
  }, []);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    failure.value = "";
    const error = await failureOf(() => startSession(field.current?.value.trim() ?? ""));
    // What this page knows may be of another key.
    if (error === undefined) return location.reload();
    failure.value = describeFailure(error);
    field.current?.select();
  };
  return h(
    "section",
    { class: "stack", "aria-labelledby": "sign-in" },
    h("h2", { id: "sign-in" }, "Sign in"),
    h(
      "form",
      { class: "address", onSubmit: (event: Event) => void submit(event) },
      h("label", { for: "key" }, "Your key for this service"),
      h("input", {
        id: "key",
        ref: field,
        type: "password",
        autoComplete: "current-password",
        required: true,
        "aria-describedby": "key-failure",
      }),
      h("button", { class: "primary" }, "Sign in"),
      h("p", { id: "key-failure", class: "failure", role: "alert" }, failure.value),
    ),
  );
}
