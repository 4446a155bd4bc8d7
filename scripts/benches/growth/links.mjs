// A thread has no origin.
/* oxlint-disable unicorn/require-post-message-target-origin */
import { parentPort, workerData } from 'node:worker_threads'
import { WebSocket } from 'ws'

/** The ends of many devices' links in a thread of their own: they say hello, and beat as they are told. */
const claimState = { accepting: true, reason: null, message: null, activeRuns: 0 }
const hello = {
  type: 'hello',
  protocol: 1,
  version: '0.0.0',
  platform: 'linux',
  hostname: 'bench',
  runs: [],
  claimState,
}

let open = 0
for (const { url, publicId, token } of workerData) {
  const socket = new WebSocket(url, { perMessageDeflate: false })
  socket.on('open', () => socket.send(JSON.stringify({ ...hello, publicId, token, instance: crypto.randomUUID() })))
  socket.on('message', (bytes) => {
    const message = JSON.parse(bytes)
    if (message.type !== 'welcome') return
    setInterval(() => socket.send(JSON.stringify({ type: 'heartbeat', claimState })), message.heartbeatMs)
    if (++open === workerData.length) parentPort.postMessage('open')
  })
  socket.on('error', (error) => parentPort.postMessage(String(error)))
}
