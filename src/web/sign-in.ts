import { useSignal } from "@preact/signals";
import { type ComponentChild, h } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { ApiError, startSession } from "./api.ts";
import { describeFailure } from "./texts.ts";

/** Asks for a key, and loads the page again once the service has accepted it. */
export function SignIn(): ComponentChild {
  const failure = useSignal("");
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    failure.value = "";
    try {
      await startSession(field.current?.value.trim() ?? "");
      // What this page knows may be of another key.
      location.reload();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      failure.value = describeFailure(error);
      field.current?.select();
    }
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
