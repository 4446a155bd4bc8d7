const header = 8

/** The output of a container without a terminal: frames with the stream and the size before each piece. */
export function plainText(body: Buffer): string {
  const pieces: Buffer[] = []
  for (let at = 0; at + header <= body.length;) {
    const size = body.readUInt32BE(at + 4)
    pieces.push(body.subarray(at + header, at + header + size))
    at += header + size
  }
  return Buffer.concat(pieces).toString('utf8')
}
