import { createServer, type AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { connectInCluster } from '../../../device-manager/wall/sandbox-acts.ts'

// What is tried of the network of a sandbox that has one, as in a cluster.

const connecting = (host: string, port: number) =>
  connectInCluster({ KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: String(port) })

test('an API of the cluster that answers shows that no policy holds', async () => {
  const server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  expect(await connecting('127.0.0.1', port)).toEqual({ isRefused: false, seen: '127.0.0.1 took the connection' })
})

test.each([
  ['says no', '127.0.0.1', 1],
  ['cannot be reached', '192.0.2.1', 443],
])('one that %s shows that one does', async (_what, host, port) => {
  expect(await connecting(host, port)).toMatchObject({ isRefused: true, seen: expect.stringContaining(host) })
})

test('where nobody says which it is, nothing is shown', async () => {
  const seen = 'the cluster does not say where its API is'
  expect(await connectInCluster({})).toEqual({ isRefused: false, seen })
})
