import { type ComponentChild, h } from "preact";

/** How pages get here from elsewhere, and where programs go. */
export function Footer(): ComponentChild {
  const bookmarklet = `javascript:void open(${JSON.stringify(`${new URL("./", document.baseURI).href}?url=`)}+encodeURIComponent(location.href))`;
  return h(
    "footer",
    { class: "stack" },
    h(
      "details",
      {},
      h("summary", {}, "From other pages to this one"),
      h(
        "p",
        {},
        "Drag this link to your bookmarks; on any page, it brings you here with the page's address: ",
        h(
          "a",
          { href: bookmarklet, onClick: (event: Event) => event.preventDefault() },
          "Look with Unreel",
        ),
      ),
      h("p", {}, "On a phone, install this page; then pages can be shared to it."),
    ),
    h("p", {}, h("a", { href: "docs" }, "For programs: the API")),
  );
}
