declare module "html-encoding-sniffer" {
  interface SniffOptions {
    transportLayerEncodingLabel?: string;
    defaultEncoding?: string;
    /** How far a `<meta>` is looked for; 1,024 by default. */
    maxPrescanBytes?: number;
  }
  /** The encoding's name (WHATWG Encoding), in its usual spelling. */
  function sniffHtmlEncoding(bytes: Uint8Array, options?: SniffOptions): string;
  export = sniffHtmlEncoding;
}
