import type { Browser, CDPSession } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readSubtitles } from "../../src/subtitles/read.ts";
import { writeWebVtt } from "../../src/subtitles/write.ts";
import { isChromiumMissing, launchChromium } from "../web/chromium.ts";

/** Plays a picture of 640 × 360 with these subtitles, from the corner of the page. */
const play = `async (vtt) => {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [640, 360];
  setInterval(() => canvas.getContext("2d").fillRect(0, 0, 640, 360), 20);
  const video = document.createElement("video");
  Object.assign(video, { srcObject: canvas.captureStream(), muted: true, width: 640, height: 360 });
  const track = document.createElement("track");
  track.src = URL.createObjectURL(new Blob([vtt], { type: "text/vtt" }));
  document.body.style.margin = 0;
  document.body.replaceChildren(video);
  video.append(track);
  track.track.mode = "showing";
  const shown = new Promise((resolve) => (track.track.oncuechange = resolve));
  await video.play();
  await shown;
  await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
}`;

interface Node {
  nodeId: number;
  nodeName: string;
  nodeValue: string;
  children?: Node[];
  shadowRoots?: Node[];
}

/** Returns the corners of what is around a text, also in the browser's own elements, in percent of the picture. */
async function boxAround(session: CDPSession, text: string) {
  const { root } = (await session.send("DOM.getDocument", { depth: -1, pierce: true })) as { root: Node };
  const find = (node: Node, parent: Node): Node | undefined => {
    if (node.nodeName === "#text" && node.nodeValue === text) return parent;
    const inner = [...(node.shadowRoots ?? []), ...(node.children ?? [])];
    return inner.map((child) => find(child, node)).find((found) => found !== undefined);
  };
  const found = find(root, root);
  const { model } = await session.send("DOM.getBoxModel", { nodeId: found?.nodeId ?? 0 });
  const [left, top, , , right, bottom] = model.border as [number, number, number, number, number, number];
  return { left: left / 6.4, right: right / 6.4, top: top / 3.6, bottom: bottom / 3.6 };
}

const ttml = (region: string, text: string) =>
  `<tt xmlns="http://www.w3.org/ns/ttml" xmlns:tts="http://www.w3.org/ns/ttml#styling"><head><layout><region xml:id="r" ${region}/></layout></head>` +
  `<body region="r"><div><p begin="0s" end="90s">${text}</p></div></body></tt>`;

describe.skipIf(isChromiumMissing)("Chromium shows text where its source puts it:", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser?.close());

  /** Returns where each of the texts is. */
  async function showAll(subtitles: string, ...texts: string[]) {
    const page = await browser.newPage({ viewport: { width: 640, height: 360 } });
    try {
      await page.goto("about:blank");
      const written = [...writeWebVtt(readSubtitles(Buffer.from(subtitles)).cues)].join("");
      await page.evaluate(`(${play})(${JSON.stringify(written)})`);
      const session = await page.context().newCDPSession(page);
      const boxes = [];
      for (const text of texts) boxes.push(await boxAround(session, text));
      return boxes;
    } finally {
      await page.close();
    }
  }

  const show = async (subtitles: string) => (await showAll(subtitles, "otter"))[0]!;

  it("at the top by a region of TTML", async () => {
    const box = await show(ttml('tts:origin="10% 10%" tts:extent="80% 20%" tts:textAlign="center"', "otter"));
    expect(box.top).toBeGreaterThan(8);
    expect(box.bottom).toBeLessThan(25);
    expect((box.left + box.right) / 2).toBeCloseTo(50, -1);
  });

  it("at the lower end of a region in the upper half", async () => {
    const box = await show(ttml('tts:origin="0% 0%" tts:extent="100% 50%" tts:displayAlign="after"', "otter"));
    expect(box.top).toBeGreaterThan(38);
    expect(box.bottom).toBeLessThan(55);
  });

  it("one text of a region below another at the same time", async () => {
    const both = 'otter</p><p begin="0s" end="90s">beaver';
    const region = 'tts:origin="10% 10%" tts:extent="80% 20%" tts:textAlign="center"';
    const [otter, beaver] = await showAll(ttml(region, both), "otter", "beaver");
    expect(beaver!.top).toBeGreaterThanOrEqual(otter!.bottom - 1);
    expect(beaver!.bottom).toBeLessThan(30);
  });

  it("at the top by a region of WebVTT", async () => {
    const region = "REGION\nid:top lines:2 regionanchor:50%,0% viewportanchor:50%,5%\n";
    const box = await show(`WEBVTT\n\n${region}\n00:00.000 --> 01:30.000 region:top\notter\n`);
    expect(box.bottom).toBeLessThan(25);
  });

  it("on the right at the bottom", async () => {
    const box = await show(
      ttml('tts:origin="55% 80%" tts:extent="40% 15%" tts:displayAlign="after" tts:textAlign="right"', "otter"),
    );
    expect(box.top).toBeGreaterThan(75);
    expect(box.left).toBeGreaterThan(60);
    expect(box.right).toBeLessThan(97);
  });

  it("in columns on the right", async () => {
    const box = await show(ttml('tts:origin="80% 10%" tts:extent="15% 80%" tts:writingMode="tbrl"', "otter"));
    expect(box.left).toBeGreaterThan(85);
    expect(box.top).toBeLessThan(20);
  });

  it("at the top by an alignment of SubRip", async () => {
    const box = await show("1\n00:00:00,000 --> 00:01:30,000\n{\\an8}otter\n");
    expect(box.bottom).toBeLessThan(20);
  });

  it("at the bottom if nothing else is said", async () => {
    const box = await show("1\n00:00:00,000 --> 00:01:30,000\notter\n");
    expect(box.top).toBeGreaterThan(75);
  });
});
