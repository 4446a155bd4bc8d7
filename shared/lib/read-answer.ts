/** Reads the whole body of an answer to `fetch`. Throws what `tooLarge` makes once more than `maxBytes` came. */
export async function readAnswer({ body }: Response, maxBytes: number, tooLarge: () => Error): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += chunk.length
    if (size > maxBytes) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
