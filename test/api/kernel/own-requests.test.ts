import { expect, onTestFinished, test } from 'vitest'
import { createHttpServer } from '../../../control-plane/http/http-server.ts'
import { ownRequests, type OwnRequest } from '../../../control-plane/http/own-requests.ts'
import { realWorld } from '../../../shared/lib/world.ts'

// Requests of a server to itself.

const own: OwnRequest = {
  method: 'GET',
  path: '/',
  headers: {},
  body: null,
  mostBytes: 100,
  signal: new AbortController().signal,
}

function start() {
  const stopping = new AbortController()
  const server = createHttpServer({ takesUpgrade: () => false, world: realWorld, stopping: stopping.signal })
  onTestFinished(() => server.closeAllConnections())
  return { server, stopping, ask: ownRequests(server) }
}

test('one that is under way when the server begins to stop is answered, and so is one after that', async () => {
  const { server, stopping, ask } = start()
  const [asked, stopped] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  server.on('request', (_, response) => {
    asked.resolve()
    void stopped.promise.then(() => response.end('done'))
  })
  const answer = ask(own)
  await asked.promise
  stopping.abort()
  stopped.resolve()
  expect(await answer).toMatchObject({ status: 200, text: 'done' })
  expect(await ask(own)).toMatchObject({ status: 200, text: 'done' })
})

test('one whose answer is larger than was asked for is cut off, and its connection ends', async () => {
  const { server, ask } = start()
  const closed = Promise.withResolvers<void>()
  server.on('request', (_, response) => {
    response.once('close', closed.resolve)
    response.write('x'.repeat(200))
  })
  expect(await ask(own)).toMatchObject({ isTooLarge: true, text: '' })
  await closed.promise
})

test('one that its caller gives up rejects, and its connection ends', async () => {
  const { server, ask } = start()
  const [asked, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  server.on('request', (_, response) => {
    response.once('close', closed.resolve)
    asked.resolve()
  })
  const gone = new AbortController()
  const answer = ask({ ...own, signal: gone.signal })
  await asked.promise
  gone.abort()
  await expect(answer).rejects.toThrow(/abort/i)
  await closed.promise
})
