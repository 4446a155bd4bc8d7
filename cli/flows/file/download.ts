import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { basename } from 'node:path'
import { Transform, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { localText } from '../../arguments/values.ts'
import type { CommandContext, Flow } from '../../context/context.ts'
import { CliError } from '../../errors/cli-error.ts'
import type { Client } from '../../calls/client.ts'
import { openBytes } from '../../http/open-bytes.ts'
import { callOf } from '../../http/route-call.ts'
import { pathSegment } from '../../http/path-segment.ts'
import { writeWhole } from '../../machine/write-whole.ts'
import { textAt } from '../../replies/fields.ts'

/** `file download`: writes the bytes of a file, or of one of its versions, to a file or to standard output. */
export const fileDownload: Flow = async (context) => {
  const { values, resolvePath, out } = context
  const client = await context.connect()
  const call = callOf(context)
  const revision = localText(values, 'revision')
  const path =
    revision === null ? call.path : call.path.replace(/download$/, `revisions/${pathSegment(revision)}/download`)
  const { body } = await client.call({ ...call, path })
  const wanted = localText(values, 'output')
  const target = wanted ?? (await nameOf(context, client, call.path.replace(/\/download$/, '')))
  const answer = await openBytes(textAt(body, 'url') ?? '')
  const bytes = checked(answer)
  if (target === '-') {
    if (process.stdout.isTTY) await showText(context, bytes)
    else await pipeline(bytes, process.stdout, { end: false })
    return
  }
  const place = resolvePath(target)
  await writeWhole(place, bytes, wanted !== null)
  await out.result({ path: place, sizeBytes: Number(answer.headers['content-length']) }, { look: 'file download' })
}

/** On a terminal only text is shown, and nothing in it steers the terminal. Fails at the first bytes that are no text. */
async function showText({ out, values }: CommandContext, bytes: Readable): Promise<void> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const read = (chunk?: Buffer) => {
    try {
      const text = decoder.decode(chunk, { stream: chunk !== undefined })
      if (!text.includes('\0')) return text
    } catch {
      // Said below.
    }
    throw new CliError('binary_output', 'This file is no text, and its bytes could garble the terminal.', {
      remediation: `Write them to a file (\`svc file download ${values.params['id'] ?? 'FILE'} --output NAME\`) or into a pipe.`,
    })
  }
  for await (const chunk of bytes) {
    out.piece(read(chunk as Buffer))
    await out.drained()
  }
  out.piece(read())
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

/**
 * Without folders and characters that steer a terminal, whatever the server says. Somebody else chose the name: it must be no file
 * that a program reads by itself (`.bashrc`, `.envrc`), and no flag of the command in which it is typed next (`-rf`).
 */
async function nameOf({ out }: CommandContext, client: Client, path: string): Promise<string> {
  const { body } = await client.call({ method: 'GET', path })
  const said = (textAt(body, 'name') ?? '').replaceAll('\\', '/').replaceAll(/[\p{Cc}\p{Bidi_C}]/gu, '_')
  const name = basename(said)
  if (name === '' || name === '.' || name === '..') return 'file'
  if (!/^[.-]/.test(name)) return name
  const safe = `_${name.slice(1)}`
  out.message(`svc: the file is named ${name}; it is written as ${safe}. --output chooses another name.`)
  return safe
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
