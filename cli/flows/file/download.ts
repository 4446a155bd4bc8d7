import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { basename, resolve } from 'node:path'
import { Transform, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { localText } from '../../arguments/values.ts'
import type { CommandContext, Flow } from '../../context.ts'
import { CliError } from '../../errors/cli-error.ts'
import type { Client } from '../../http/client.ts'
import { openBytes } from '../../http/open-bytes.ts'
import { callOf } from '../../http/route-call.ts'
import { pathSegment } from '../../http/path-segment.ts'
import { writeWhole } from '../../machine/write-whole.ts'
import { textAt } from '../../replies/fields.ts'

/** `file download`: writes the bytes of a file, or of one of its versions, to a file or to standard output. */
export const fileDownload: Flow = async (context) => {
  const { values, cwd, out } = context
  const client = await context.connect()
  const call = callOf(context)
  const revision = localText(values, 'revision')
  const path =
    revision === null ? call.path : call.path.replace(/download$/, `revisions/${pathSegment(revision)}/download`)
  const { body } = await client.call({ ...call, path })
  const wanted = localText(values, 'output')
  const target = wanted ?? (await nameOf(client, call.path.replace(/\/download$/, '')))
  const answer = await openBytes(textAt(body, 'url') ?? '')
  const bytes = checked(answer)
  if (target === '-') {
    await pipeline(bytes, process.stdout, { end: false })
    return
  }
  const place = resolve(cwd, target)
  await writeWhole(place, bytes, wanted !== null)
  await out.result({ path: place, sizeBytes: Number(answer.headers['content-length']) })
}

/** `file read`: prints the text of a file. */
export const fileRead: Flow = async (context: CommandContext) => {
  const { out } = context
  const client = await context.connect()
  const { body } = await client.call(callOf(context, { query: { expand: 'content' } }))
  const content = textAt(body, 'content')
  if (content === null)
    throw new CliError('no_text', 'This file is no text.', {
      remediation: `Get its bytes with \`svc file download ${textAt(body, 'id') ?? ''}\`.`,
    })
  if (out.isJsonWanted) await out.result(body)
  else out.exact(content)
}

/** Without folders and characters that steer a terminal, whatever the server says. */
async function nameOf(client: Client, path: string): Promise<string> {
  const { body } = await client.call({ method: 'GET', path })
  const said = (textAt(body, 'name') ?? '').replaceAll('\\', '/').replaceAll(/[\p{Cc}\p{Bidi_C}]/gu, '_')
  const name = basename(said)
  return name === '' || name === '.' || name === '..' ? 'file' : name
}

/** Fails when the bytes are not those that the server named. */
function checked(answer: IncomingMessage): Readable {
  const hash = createHash('sha256')
  const tag = (answer.headers.etag ?? '').replaceAll('"', '')
  const check = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk)
      done(null, chunk)
    },
    flush(done) {
      const isSame = answer.complete && hash.digest('hex') === tag
      done(isSame ? null : new CliError('connection_lost', 'The download broke off.', { exit: 'unreachable' }))
    },
  })
  answer.on('error', (error) => check.destroy(error))
  answer.on('aborted', () =>
    check.destroy(new CliError('connection_lost', 'The download broke off.', { exit: 'unreachable' })),
  )
  return answer.pipe(check)
}
