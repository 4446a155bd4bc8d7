import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { request, type Agent, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Context } from './context.ts'
import { size } from './sizes.ts'

// Uploads and downloads as a client makes them, which costs the client as little as can be.

const fileMegabytes = size(50, 2)
export const fileBytes = fileMegabytes * 1024 * 1024
export const fileText = `${fileMegabytes} MB`

/** A body of so many bytes with this name, in base64; nothing in it repeats. */
export function uploadBody(name: string): Buffer {
  const bytes = Buffer.alloc(fileBytes)
  for (let at = 0; at < bytes.length; at += 4) bytes.writeUInt32LE(Math.imul(at + 1, 2_654_435_761) >>> 0, at)
  return Buffer.from(`{"name":${JSON.stringify(name)},"contentBase64":"${bytes.toString('base64')}"}`, 'latin1')
}

export interface Sending {
  agent: Agent
  url: string
  token?: string
  body: Buffer
}

export async function upload({ agent, url, token, body }: Sending): Promise<{ id: string; path: string }> {
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    const headers = {
      'content-type': 'application/json',
      'content-length': body.length,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    }
    const sent = request(url, { agent, method: 'POST', headers }, resolve)
    sent.once('error', reject)
    sent.end(body)
  })
  const text = (await (await answered).setEncoding('utf8').toArray()).join('')
  const { statusCode = 0 } = await answered
  if (statusCode >= 300) throw new Error(`${url} answered ${statusCode}: ${text}`)
  return JSON.parse(text) as { id: string; path: string }
}

/** Returns how many bytes came. */
export async function download(agent: Agent, url: string): Promise<number> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    request(url, { agent }, resolve).once('error', reject).end()
  })
  let length = 0
  for await (const chunk of answer as AsyncIterable<Buffer>) length += chunk.length
  if (answer.statusCode !== 200) throw new Error(`${url} answered ${answer.statusCode}`)
  return length
}

/** Milliseconds that the work takes. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

export interface FilePeer {
  url: string
  end(): Promise<void>
}

export async function startFilePeer({ scratch }: Pick<Context, 'scratch'>): Promise<FilePeer> {
  const folder = join(scratch, 'file-peer')
  mkdirSync(folder)
  const program = join(import.meta.dirname, 'file-peer.mjs')
  const child = spawn(process.execPath, [program, folder], { stdio: ['pipe', 'pipe', 'inherit'] })
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  return {
    url: `http://127.0.0.1:${(JSON.parse(line) as { port: number }).port}`,
    async end() {
      child.stdin.end()
      if (child.exitCode === null) await once(child, 'exit')
    },
  }
}
