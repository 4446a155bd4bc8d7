import { Agent, request } from 'node:http'
import { parentPort } from 'node:worker_threads'

/** A client in a thread of its own, so that the thread of the server does the server's work alone. One request after another. */
const agent = new Agent({ keepAlive: true, maxSockets: 1 })

const ask = ({ url, method, headers, body }) =>
  new Promise((resolve, reject) => {
    const call = request(url, { agent, method, headers }, (answer) => {
      answer.on('data', () => {})
      answer.once('end', () => resolve(answer.statusCode))
      answer.once('error', reject)
    })
    call.once('error', reject)
    call.end(body)
  })

parentPort.on('message', async ({ id, requests }) => {
  const statuses = []
  try {
    for (const each of requests) statuses.push(await ask(each))
    parentPort.postMessage({ id, statuses })
  } catch (error) {
    parentPort.postMessage({ id, error: String(error) })
  }
})
