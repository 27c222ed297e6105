import { type ComponentChild, h } from "preact";

/** How pages get here from elsewhere, and where programs go. */
export function WaysHere(): ComponentChild {
  return h(
    "nav",
    { class: "row", "aria-label": "Ways to use this service" },
    h(
      "details",
      { class: "ways" },
      h("summary", {}, "Add to browser"),
      h(
        "div",
        { class: "card stack" },
        h(
          "p",
          {},
          "Drag this link to your bookmarks. On any page, click the bookmark to open that page in Unreel.",
        ),
        h(
          "p",
          {},
          h("a", { class: "button", href: bookmarklet(), onClick: stay }, "Open in Unreel"),
        ),
        h("p", {}, "On a phone, install this page as an app. Then you can share pages to it."),
      ),
    ),
    h("a", { class: "button", href: "docs" }, "API"),
  );
}

/** A script for other pages; the policy of this one does not let it run here. */
function bookmarklet(): string {
  const target = JSON.stringify(`${new URL("./", document.baseURI).href}?url=`);
  return `javascript:void open(${target}+encodeURIComponent(location.href))`;
}

function stay(event: Event): void {
  event.preventDefault();
}
