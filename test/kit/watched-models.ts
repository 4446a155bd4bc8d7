import { createServer, request as ask } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { startStubLlm } from './stub-llm.ts'

/** The scripted model server behind one that notes with which keys it was asked. */
export async function startModels() {
  const stub = await startStubLlm()
  onTestFinished(() => stub.stop())
  const keys = new Set<string | undefined>()
  const front = createServer((request, response) => {
    const { 'x-api-key': key, authorization } = request.headers
    keys.add(key === undefined ? authorization : String(key))
    const { method, headers, url } = request
    const on = ask(`${stub.url}${url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(response)
    })
    request.pipe(on)
  })
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    front.closeAllConnections()
    front.close()
  })
  return { stub, keys, url: `http://127.0.0.1:${(front.address() as AddressInfo).port}` }
}
