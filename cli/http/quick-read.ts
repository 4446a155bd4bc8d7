import type { IncomingMessage } from 'node:http'
import type { Caller } from '../calls/client.ts'
import { parseJsonText } from '../../shared/lib/lines.ts'

/** Reads JSON that must come soon and be small. Resolves with undefined where it does not, whatever the reason is. */
export function quickRead(
  caller: Caller,
  path: string,
  { withinMs, maxBytes }: { withinMs: number; maxBytes: number },
): Promise<unknown> {
  return new Promise((resolve) => {
    const url = new URL(caller.server + path)
    const http = process.getBuiltinModule(url.protocol === 'https:' ? 'node:https' : 'node:http')
    const headers = {
      Accept: 'application/json',
      Authorization: `Bearer ${caller.token}`,
      ...(caller.workspaceId === null ? {} : { 'Svc-Workspace-Id': caller.workspaceId }),
    }
    const request = http.request(url, { agent: false, headers }, (response) => read(response))
    const end = (value?: unknown) => {
      clearTimeout(timer)
      request.destroy()
      resolve(value)
    }
    const timer = setTimeout(end, withinMs)
    const read = (response: IncomingMessage) => {
      if (response.statusCode !== 200) return end()
      const chunks: Buffer[] = []
      let size = 0
      response.on('data', (chunk: Buffer) => {
        size += chunk.length
        if (size > maxBytes) end()
        else chunks.push(chunk)
      })
      response.on('error', () => end())
      response.on('end', () => end(parseJsonText(Buffer.concat(chunks).toString('utf8'))))
    }
    request.on('error', () => end())
    request.end()
  })
}
