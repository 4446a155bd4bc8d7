// A thread has no origin.
/* oxlint-disable unicorn/require-post-message-target-origin */
import { Agent, request } from 'node:http'
import { parentPort } from 'node:worker_threads'

/** A client in a thread of its own, so that the thread of the server does the server's work alone. One request after another. */
const agent = new Agent({ keepAlive: true, maxSockets: 1 })

const ask = ({ url, method, headers, body }) =>
  new Promise((resolve, reject) => {
    // Node sends the body of a DELETE without a word of its length.
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
    const call = request(url, { agent, method, headers: { ...headers, ...length } }, (answer) => {
      let bytes = 0
      answer.on('data', (chunk) => (bytes += chunk.length))
      answer.once('end', () => resolve({ status: answer.statusCode, bytes }))
      answer.once('error', reject)
    })
    call.once('error', reject)
    call.end(body)
  })

parentPort.on('message', ({ id, requests }) => void answer(id, requests))

async function answer(id, requests) {
  const answers = []
  try {
    for (const each of requests) answers.push(await ask(each))
    parentPort.postMessage({ id, answers })
  } catch (error) {
    parentPort.postMessage({ id, error: String(error) })
  }
}
