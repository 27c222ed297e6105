import { type ComponentChild, type ComponentProps, h, type RenderableProps, type TargetedMouseEvent } from "preact";
import { useState } from "preact/hooks";

interface ButtonProps extends ComponentProps<"button"> {
  isDisabled: boolean;
}

/** A button that keeps the focus while it is disabled: browsers take it from one with the attribute `disabled`. */
export function Button({ isDisabled, onClick, ...others }: ButtonProps): ComponentChild {
  return h("button", { ...others, "aria-disabled": isDisabled, onClick: isDisabled ? undefined : onClick });
}

export interface CheckProps {
  isChecked: boolean;
  /** @param isRange With the shift key. */
  onCheck: (isChecked: boolean, isRange: boolean) => void;
}

/** A box with a label. */
export function Check({ isChecked, onCheck, children }: RenderableProps<CheckProps>): ComponentChild {
  const onClick = ({ currentTarget, shiftKey }: TargetedMouseEvent<HTMLInputElement>): void =>
    onCheck(currentTarget.checked, shiftKey);
  return h("label", { class: "check" }, h("input", { type: "checkbox", checked: isChecked, onClick }), children);
}

interface PictureProps {
  class: string;
  src: string | undefined;
}

/** A picture of a page. Its space is kept, whether it comes or not. */
export function Picture({ class: name, src }: PictureProps): ComponentChild {
  const [isBroken, setBroken] = useState(false);
  const image = { loading: "lazy", decoding: "async", alt: "", onError: () => setBroken(true) } as const;
  return h("span", { class: name }, src !== undefined && !isBroken && h("img", { ...image, src }));
}
