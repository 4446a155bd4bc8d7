import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ControlSocket, type ControlHandlers } from '../../../device-manager/daemon/control-socket.ts'

const quietLog = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

let folder: string
/** Ends what a test opened, also where the test failed. */
let open: { end(): unknown }[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-control-'))
})
afterEach(async () => {
  await Promise.all(open.map((one) => one.end()))
  open = []
  rmSync(folder, { recursive: true, force: true })
})

async function listening(handlers: Partial<ControlHandlers>): Promise<{ control: ControlSocket; path: string }> {
  const path = join(folder, 'daemon.sock')
  const control = new ControlSocket({
    path,
    handlers: handlers as ControlHandlers,
    log: quietLog,
    afterReply: () => {},
  })
  await control.listen()
  open.push({ end: () => control.close() })
  return { control, path }
}

async function connected(path: string): Promise<Socket> {
  const socket = createConnection(path)
  socket.on('error', () => undefined)
  open.push({ end: () => socket.destroy() })
  await once(socket, 'connect')
  return socket
}

test('the end of a daemon waits for nobody who asks nothing, or whose answer takes long', async () => {
  let asked = () => {}
  const isAsked = new Promise<void>((resolve) => (asked = resolve))
  const { control, path } = await listening({
    refresh: () => {
      asked()
      return new Promise(() => undefined)
    },
  })
  const [silent, waiting] = [await connected(path), await connected(path)]
  const cut = Promise.all([once(silent, 'close'), once(waiting, 'close')])
  waiting.write('{"op":"refresh"}\n')
  await isAsked
  const began = performance.now()
  await control.close()
  await cut
  expect(performance.now() - began).toBeLessThan(3_000)
})

test('a request whose operation is no text is refused, and the daemon goes on', async () => {
  const { path } = await listening({})
  const socket = await connected(path)
  // It has no text of its own: to make one of it throws.
  socket.write('{"op":{"toString":1,"valueOf":1}}\n')
  const [reply] = (await once(socket, 'data')) as [Buffer]
  expect(JSON.parse(reply.toString())).toMatchObject({ ok: false, error: { code: 'unknown_op' } })
})
