/** The `code` of a system, undici or zlib error ("ECONNREFUSED", "UND_ERR_SOCKET", …). */
export function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : undefined;
}
