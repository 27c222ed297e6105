declare module "html-encoding-sniffer" {
  interface SniffOptions {
    transportLayerEncodingLabel?: string;
    defaultEncoding?: string;
    /** How many bytes are scanned for a `<meta>`; default 1,024. */
    maxPrescanBytes?: number;
  }
  /** Returns the encoding's name (WHATWG Encoding), in its usual spelling. */
  function sniffHtmlEncoding(bytes: Uint8Array, options?: SniffOptions): string;
  export = sniffHtmlEncoding;
}
