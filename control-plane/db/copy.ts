import type { Client, Connection, Submittable } from 'pg'

/** The types of columns that are copied. */
export type CopiedType = 'text' | 'integer' | 'bigint' | 'binary'
export interface CopiedInto {
  table: string
  columns: Readonly<Record<string, CopiedType>>
}
/** The values of a row in the order of the columns. */
export type CopiedRow = readonly (string | number | Uint8Array)[]

/**
 * Inserts rows by PostgreSQL's COPY in its binary form. Values of a statement are copied several times on their way, which
 * for the bodies of frames costs more than storing them; here they go to the socket as they are.
 */
export function copyRows(client: Client, into: CopiedInto, rows: readonly CopiedRow[]): Promise<void> {
  const names = Object.keys(into.columns).map((name) => `"${name}"`)
  const types = Object.values(into.columns)
  return new Promise((resolve, reject) => {
    client.query(
      new CopyIn({
        sql: `copy "${into.table}" (${names.join(', ')}) from stdin (format binary)`,
        parts: rows.flatMap((row) => partsOf(row, types)),
        done: (error) => (error === null ? resolve() : reject(error)),
      }),
    )
  })
}

/** The interface that pg's client asks of a query object. */
class CopyIn implements Submittable {
  private readonly sql: string
  private readonly parts: readonly Uint8Array[]
  private readonly done: (error: Error | null) => void

  constructor(copy: { sql: string; parts: readonly Uint8Array[]; done: (error: Error | null) => void }) {
    this.sql = copy.sql
    this.parts = copy.parts
    this.done = copy.done
  }

  submit(connection: Connection): void {
    connection.query(this.sql)
  }

  handleCopyInResponse({ stream }: Connection): void {
    stream.cork()
    const parts = [...message(opening, []), ...this.parts, ...message(closing, []), copyDone]
    for (const part of parts) stream.write(part)
    stream.uncork()
  }

  handleError(error: Error): void {
    this.done(error)
  }

  handleReadyForQuery(): void {
    this.done(null)
  }

  handleCommandComplete(): void {}
}

/** Makes the message of a row. Binary values stay as they are; what is between them is put together. */
function partsOf(row: CopiedRow, types: readonly CopiedType[]): Uint8Array[] {
  const fields = row.flatMap((value, index) => {
    const bytes = bytesOf(value, types[index]!)
    return [int32(bytes.length), bytes]
  })
  return message(int16(row.length), fields)
}

function bytesOf(value: string | number | Uint8Array, type: CopiedType): Uint8Array {
  if (type === 'binary') return value as Uint8Array
  if (type === 'text') return Buffer.from(value as string)
  if (type === 'integer') return int32(value as number)
  const bytes = Buffer.allocUnsafe(8)
  bytes.writeBigInt64BE(BigInt(value as number))
  return bytes
}

/** Code and length (which counts itself) before a message's parts; short parts are joined. */
function message(first: Uint8Array, more: readonly Uint8Array[]): Uint8Array[] {
  const length = more.reduce((sum, part) => sum + part.length, first.length)
  const parts: Uint8Array[] = []
  let short: Uint8Array[] = [copyData, int32(length + 4), first]
  for (const part of more) {
    if (part.length < joinedBytes) short.push(part)
    else {
      parts.push(Buffer.concat(short), part)
      short = []
    }
  }
  return short.length === 0 ? parts : [...parts, Buffer.concat(short)]
}

const joinedBytes = 4096
const int16 = (value: number): Uint8Array => Buffer.from([(value >> 8) & 255, value & 255])
function int32(value: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(4)
  bytes.writeInt32BE(value)
  return bytes
}

const copyData = Buffer.from('d')
const copyDone = Buffer.from('c\0\0\0\x04')
/** The signature, no flags, no extension. */
const opening = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1')
const closing = int16(-1)
