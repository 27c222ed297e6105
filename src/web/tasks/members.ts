import { type ReadonlySignal, signal, useSignal } from "@preact/signals";
import { type ComponentChild, h, type TargetedEvent } from "preact";
import { useEffect } from "preact/hooks";
import type { Task } from "../../model/task.ts";
import { failureOf } from "../api.ts";
import { describeFailure } from "../texts.ts";
import { TaskRow, type TaskRowProps } from "./task-row.ts";
import { describeCollectionWarnings, sumOf } from "./task-texts.ts";
import type { Tasks } from "./tasks.ts";

interface MembersProps extends Pick<TaskRowProps, "onAction"> {
  task: ReadonlySignal<Task>;
  tasks: Tasks;
}

/** The entries of a collection, which are read once they are looked at; nothing for the task of one page. */
export function Members(props: MembersProps): ComponentChild {
  return props.task.value.kind === "collection" ? h(MemberList, props) : null;
}

/** Shown at first, and added by each wish for more. */
const pageSize = 50;

/** None of them can be chosen. */
const noSelection = signal(undefined);

function MemberList({ task, tasks, onAction }: MembersProps): ComponentChild {
  const { id, counts } = task.value;
  const isOpen = useSignal(false);
  const size = useSignal(pageSize);
  const shown = useSignal<{ ids: string[]; hasMore: boolean }>({ ids: [], hasMore: false });
  const failure = useSignal<string | undefined>(undefined);
  const total = counts === undefined ? 0 : sumOf(counts);
  useEffect(() => {
    if (!isOpen.value) return undefined;
    let isStale = false;
    const read = async (): Promise<void> => {
      const error = await failureOf(async () => {
        const members = await tasks.readMembers(id, size.value);
        if (!isStale) shown.value = members;
      });
      if (!isStale) failure.value = error && describeFailure(error);
    };
    void read();
    return () => void (isStale = true);
  }, [id, isOpen.value, size.value, total, tasks.readings.value]);
  const members = shown.value.ids.flatMap((each) => tasks.get(each) ?? []);
  const onToggle = ({ currentTarget }: TargetedEvent<HTMLDetailsElement>): void =>
    void (isOpen.value = currentTarget.open);
  return [
    ...describeCollectionWarnings(task.value).map((sentence) => h("p", { key: sentence, class: "muted" }, sentence)),
    h(
      "details",
      { key: "members", class: "members", onToggle },
      h("summary", {}, `Entries of the list (${total})`),
      h("p", { class: "failure", role: "alert" }, failure.value),
      counts !== undefined &&
        counts.succeeded > 0 &&
        h("p", {}, h("a", { class: "button", href: `tasks/${id}/files.zip`, download: "" }, "Save all as ZIP")),
      h(
        "ul",
        { class: "stack" },
        members.map((member) =>
          h(
            "li",
            { key: member.peek().id },
            h(TaskRow, { task: member, selected: noSelection, onSelect: () => {}, onAction }),
          ),
        ),
      ),
      shown.value.hasMore && h("button", { onClick: () => void (size.value += pageSize) }, "More"),
    ),
  ];
}
