// How a stand-in for a claude program begins: it tells its version, greets the device manager, and gets its prompt.
import { createInterface } from 'node:readline'

const version = '2.1.329'

export const args = process.argv.slice(2)

export const say = (value) =>
  new Promise((done) => process.stdout.write(`${JSON.stringify({ session_id: 'ses-1', ...value })}\n`, done))

const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]()

/** The next message of the device manager. Ends the process when nobody is there any more. */
export async function next() {
  const { value, done } = await input.next()
  if (done) process.exit(1)
  return JSON.parse(value)
}

/** Returns the message with the prompt. */
export async function begin(model) {
  if (args[0] === '--version' || args[0] === 'auth') {
    process.stdout.write(args[0] === 'auth' ? '{"loggedIn":true}\n' : `${version} (Claude Code)\n`)
    process.exit(0)
  }
  const hello = await next()
  const response = { subtype: 'success', request_id: hello.request_id, response: {} }
  await say({ type: 'control_response', response })
  const prompt = await next()
  await say({ type: 'system', subtype: 'init', model, claude_code_version: version })
  return prompt
}
