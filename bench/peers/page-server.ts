import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { answerParent } from "../child.ts";
import { readPages } from "./pages.ts";

/** Serves saved page number N at /N; sends its parent its URL. */
const [directory = ""] = process.argv.slice(2);
const pages = readPages(directory);
const server = createServer((request, response) => {
  const page = pages[Number(request.url?.slice(1))];
  if (page === undefined) response.writeHead(404).end();
  else response.writeHead(200, { "content-type": page.contentType }).end(page.bytes);
});
const listening = new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

answerParent(async () => {
  await listening;
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
