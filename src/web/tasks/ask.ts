import { signal } from "@preact/signals";
import { h, type ComponentChild } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface Question {
  text: string;
  /** The label of the button that means yes. */
  yes: string;
}

export type Asker = ReturnType<typeof createAsker>;

/** Asks one question at a time, in a dialog in front of the page. */
export function createAsker() {
  const asked = signal<Question>();
  let resolve = (_isYes: boolean): void => {};
  const answer = (isYes: boolean): void => {
    asked.value = undefined;
    resolve(isYes);
  };
  return {
    /** Resolves with whether the answer is yes. */
    ask(question: Question): Promise<boolean> {
      answer(false);
      const answered = Promise.withResolvers<boolean>();
      resolve = answered.resolve;
      asked.value = question;
      return answered.promise;
    },
    asked,
    answer,
  };
}

/** The dialog of an asker: the safe answer has the focus, and Escape gives it. */
export function AskDialog({ asker }: { asker: Asker }): ComponentChild {
  const question = asker.asked.value;
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (question !== undefined) dialog.current?.showModal();
  }, [question]);
  if (question === undefined) return null;
  return h(
    "dialog",
    {
      class: "card",
      "aria-labelledby": "question",
      ref: dialog,
      onClose: () => asker.answer(dialog.current?.returnValue === "yes"),
    },
    h(
      "form",
      { class: "stack", method: "dialog" },
      h("p", { id: "question" }, question.text),
      h(
        "div",
        { class: "row" },
        h("button", { value: "no" }, "No"),
        h("button", { value: "yes", class: "danger" }, question.yes),
      ),
    ),
  );
}
