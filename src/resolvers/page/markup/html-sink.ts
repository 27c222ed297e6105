/** Receives what an `HtmlScanner` finds, in page order; names are in lower case. */
export interface HtmlSink {
  /** Elements whose tags are always reported. */
  readonly elements: ReadonlySet<string>;
  /** While true, all tags are reported; else those of `elements`, and start tags with microdata or data. */
  readonly wantsAllTags: boolean;
  /** While true, text outside of raw-text elements is reported. */
  readonly wantsText: boolean;
  /** Returns whether to report the text of this element, if it is a raw-text element. */
  open(tag: StartTag): boolean;
  close(name: string): void;
  /** Receives text, entities not decoded; one run of text may come in several calls. */
  text(text: string): void;
}

export interface StartTag {
  name: string;
  /** The text between the name and `>`: the attributes as written. */
  source: string;
  /** There is an `itemprop` or `itemscope` attribute. */
  hasMicrodata: boolean;
  /** Its name has a hyphen, it has a `data-*` or `x-data` attribute, or it is a link with the extension of a medium's file. */
  mayHoldData: boolean;
  /** It is `<svg>` or `<math>`, or within one. */
  isForeign: boolean;
}
