import { useSignal } from "@preact/signals";
import { type ComponentChild, h } from "preact";
import { useEffect } from "preact/hooks";
import { ApiError, endSession, readSessionName } from "./api.ts";
import { describeFailure } from "./texts.ts";

/** Whether this browser has a session: no request is needed to know that there is none. */
export function hasSession(): boolean {
  return /(?:^|; )unreel_signed_in=1(?:;|$)/.test(document.cookie);
}

/** Whose key the session has, and the way out. Its place is kept until the service has said it, so that nothing moves. */
export function Session(): ComponentChild {
  const name = useSignal("");
  const failure = useSignal("");
  const attempt = async (job: () => Promise<void>): Promise<void> => {
    failure.value = "";
    try {
      await job();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      failure.value = describeFailure(error);
    }
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
