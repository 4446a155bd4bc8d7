import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, request as ask } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject, onTestFinished } from 'vitest'

/** What a container is made of, as the engine's API has it. */
export interface ContainerBody {
  User: string
  HostConfig: Record<string, unknown> & { Mounts: Record<string, unknown>[] }
}

/** A socket that leads to the tests' engine, where the containers that are made are other ones than the server asked for. */
export async function engineThatMakes(change: (body: ContainerBody) => void): Promise<string> {
  const { socket } = inject('sandboxEngine')!
  const folder = mkdtempSync(join(tmpdir(), 'svc-o-'))
  const path = join(folder, 's')
  const front = createServer((request, response) => {
    const on = (body?: string) => {
      const headers = { ...request.headers, ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }) }
      const asked = ask({ socketPath: socket, method: request.method, path: request.url, headers }, (answer) => {
        response.writeHead(answer.statusCode!, answer.headers)
        response.flushHeaders()
        answer.pipe(response)
      })
      asked.on('error', () => response.destroy())
      response.on('close', () => asked.destroy())
      if (body === undefined) request.pipe(asked)
      else asked.end(body)
    }
    if (request.url?.includes('/containers/create') !== true) return on()
    void (async () => {
      const chunks: Buffer[] = []
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
      const body = JSON.parse(Buffer.concat(chunks).toString()) as ContainerBody
      change(body)
      on(JSON.stringify(body))
    })()
  })
  await new Promise<void>((resolve) => front.listen(path, resolve))
  onTestFinished(() => {
    front.closeAllConnections()
    front.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return path
}
