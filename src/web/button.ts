import { type ComponentChild, type ComponentProps, h } from "preact";

interface ButtonProps extends ComponentProps<"button"> {
  isDisabled: boolean;
}

/** A button that keeps the focus while it is disabled: browsers take it from one with the attribute `disabled`. */
export function Button({ isDisabled, onClick, ...others }: ButtonProps): ComponentChild {
  return h("button", { ...others, "aria-disabled": isDisabled, onClick: isDisabled ? undefined : onClick });
}
